export async function mount() { throw new Error("not yet"); }
