# A formula for Homebrew on Linux, from the sources. Written, never run.
class Ralph < Formula
  desc "Runs coding agents in a loop until the work is proven done"
  homepage "@REPOSITORY@"
  url "@REPOSITORY@/releases/download/v@VERSION@/@CRATE@-@VERSION@.crate"
  sha256 "@SHA256@"
  license "MIT"

  depends_on "rust" => :build
  depends_on "git"
  # ralph has never run on macOS.
  depends_on :linux

  def install
    system "cargo", "install", *std_cargo_args
    (man1/"ralph.1").write Utils.safe_popen_read(bin/"ralph", "man")
    with_env(PATH: "#{bin}:#{ENV["PATH"]}") do
      generate_completions_from_executable(bin/"ralph", "completions")
    end
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/ralph --version")
    system bin/"ralph", "demo", testpath/"demo", "--quiet"
  end
end
