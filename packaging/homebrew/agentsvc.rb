class Agentsvc < Formula
  desc "Run and supervise AI agents on your own machine"
  homepage "@HOMEPAGE@"
  url "@SOURCE@"
  sha256 "@SHA256@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "rust" => :build
  depends_on :linux

  def install
    system "cargo", "build", "--locked", "--profile", "dist", "--bin", "agentsvc"
    bin.install "target/dist/agentsvc"
    generate_completions_from_executable(bin/"agentsvc", "completions")
  end

  service do
    run [opt_bin/"agentsvc", "start"]
    keep_alive crashed: true
    environment_variables AGENTSVC_HOME: var/"agentsvc"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/agentsvc --version")
  end
end
