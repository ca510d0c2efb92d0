//! Error codes of hands over HTTP.

agentsvc_components::error_codes! {
    /// No hand has this id.
    HAND_NOT_FOUND = "hand_not_found", [404], "Choose an id from `GET /api/hands`.";
    /// A hand of this id is installed.
    HAND_EXISTS = "hand_exists", [409], "Delete the other hand first.";
    /// The hand has instances.
    HAND_ACTIVE = "hand_active", [409], "Delete the instances first.";
    /// The hand belongs to the installation of the daemon.
    HAND_BUNDLED = "hand_bundled", [403], "Its `.origin` says so; the operator can remove the folder.";
    /// Requirements may not be installed over the API.
    INSTALL_DEPS_DISABLED = "install_deps_disabled", [403], "Set `[hands] install_deps`, or install them by hand.";
}
