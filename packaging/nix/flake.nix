# `nix run 'github:OWNER/ralph?dir=packaging/nix'`. Written, never run.
{
  description = "Runs coding agents in a loop until the work is proven done";
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { nixpkgs, ... }:
    let
      # ralph has never run on macOS.
      systems = [ "x86_64-linux" "aarch64-linux" ];
      each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
      source = ../..;
    in {
      packages = each (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = "ralph";
          version = (builtins.fromTOML (builtins.readFile (source + "/Cargo.toml"))).package.version;
          src = source;
          cargoLock.lockFile = source + "/Cargo.lock";
          nativeBuildInputs = [ pkgs.installShellFiles pkgs.makeWrapper ];
          # The tests start real programs and need a home; CI runs them.
          doCheck = false;
          postInstall = ''
            export PATH=$out/bin:$PATH
            ralph man > ralph.1
            installManPage ralph.1
            for shell in bash fish zsh; do ralph completions $shell > ralph.$shell; done
            installShellCompletion ralph.{bash,fish,zsh}
            wrapProgram $out/bin/ralph --suffix PATH : ${pkgs.lib.makeBinPath [ pkgs.git ]}
          '';
          meta = {
            description = "Runs coding agents in a loop until the work is proven done";
            license = pkgs.lib.licenses.mit;
            mainProgram = "ralph";
            platforms = systems;
          };
        };
      });
    };
}
