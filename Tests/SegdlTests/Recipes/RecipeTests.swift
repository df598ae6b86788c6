import Foundation
import Origin
import Testing

/// Runs the commands of the page of recipes with recorded answers.
@Suite("Recipes")
struct RecipeTests {
    /// The files that each block of the page must leave, with the seed of their content, and the statuses of its lines.
    static let results: [Int: [String: UInt64]] = [
        0: ["model/model-00001-of-00002.safetensors": 1, "model/model-00002-of-00002.safetensors": 2],
        1: [
            "model/config.json": 4, "model/model-00001-of-00002.safetensors": 1,
            "model/model-00002-of-00002.safetensors": 2, "model/onnx/model quantized.onnx": 3,
        ],
        2: [
            "tools/tool-1.2.0-linux-x86_64.tar.gz": 1, "tools/tool-1.2.0-macos-arm64.tar.gz": 2, "tools/SHA256SUMS": 3,
        ],
        3: ["data/measurements.csv": 1, "data/raw data.zip": 2, "data/images.tar": 1],
        4: ["data.tar": 1],
        5: ["isos/debian-13.1.0-amd64-netinst.iso": 1],
        6: ["images/a&b.img": 2, "images/first.img": 1],
        7: ["wheels/example-2.0-py3-none-any.whl": 1],
        8: ["pkgs/example-1.0-0.conda": 2, "pkgs/other-1.0-0.conda": 3],
        9: [
            "mirror/_source-cache/archive/1e/1ebd584fa2a31942b2dfbbda3f53aa00f0e7abe48e88e96c200f0d57845e61a7.tar.gz":
                1,
            "easybuild/z/zlib/zlib-1.3.1.tar.gz": 1,
        ],
        10: ["granules/MERRA2_400.tavg1_2d_slv_Nx.20240101.nc4": 4],
    ]

    /// GnuPG signs the list of checksums of one recipe.
    private static let hasGnuPG = ["gpg", "gpgv"].allSatisfy {
        FileManager.default.isExecutableFile(atPath: "/usr/bin/" + $0)
    }

    @Test(
        "A recipe leaves the files that it promises, and no others",
        arguments: Recipe.all.filter { Self.hasGnuPG || !$0.script.contains("gpgv") })
    func recipe(_ recipe: Recipe) async throws {
        let expected = try #require(Self.results[recipe.number])
        // The login of Earthdata is sent over TLS only.
        try await withOrigin(.init(tls: recipe.isSecure)) { origin in
            try await withCommand { command in
                let servers = try RecordedServers(others: try await Self.signature(command))
                origin.route { RecordedServers.earthdata($0) ?? servers.answer($0) }
                try Self.writeFiles(command, origin)
                let outcome = try await command.run(
                    [], shell: Self.script(recipe, origin), environment: Self.environment(command, origin))
                #expect(outcome.status == 0, "\(outcome)")
                let names = expected.keys.map { $0.split(separator: "/").dropLast().joined(separator: "/") }
                for directory in Set(names) where !directory.isEmpty {
                    let found = try FileManager.default.subpathsOfDirectory(atPath: command.path(directory)).filter {
                        !$0.hasSuffix("SUMS.sign") && !$0.hasSuffix("SHA512SUMS")
                            && !Self.isDirectory($0, in: directory, command)
                    }
                    let wanted = expected.keys.filter { $0.hasPrefix(directory + "/") }
                        .map { String($0.dropFirst(directory.count + 1)) }
                    #expect(Set(found) == Set(wanted))
                }
                for (name, seed) in expected {
                    let content = OriginContent(seed: seed)
                    #expect(
                        content.firstMismatch(inFileAt: command.path(name), length: 65536) == nil, "\(name) \(outcome)")
                }
            }
        }
    }

    @Test("Every block of the page has a result, and no recipe has more than three lines")
    func complete() {
        #expect(Recipe.all.map(\.number) == Self.results.keys.sorted())
        for recipe in Recipe.all { #expect(recipe.script.split(separator: "\n").count <= 3, "\(recipe)") }
    }

    private static func isDirectory(_ name: String, in directory: String, _ command: Segdl) -> Bool {
        var isDirectory: ObjCBool = false
        _ = FileManager.default.fileExists(atPath: command.path(directory + "/" + name), isDirectory: &isDirectory)
        return isDirectory.boolValue
    }

    // MARK: The environment

    /// The commands with `http` URLs. A line fails the script unless its comment states the exit status.
    private static func script(_ recipe: Recipe, _ origin: Origin) -> String {
        let text =
            recipe.isSecure
            ? recipe.script.replacing(/(?<url>https:\/\/[^\/]+)/) { "\($0.output.url):\(origin.port)" }
            : recipe.script.replacing("https://", with: "http://")
        let lines = text.split(separator: "\n").map { line in
            guard let match = line.firstMatch(of: /\s+# exit status (?<status>\d+)$/) else {
                return "\(line) || exit 100"
            }
            return "\(line[..<match.range.lowerBound]); [ $? = \(match.output.status) ] || exit 101"
        }
        // pip would ask the real index.
        return #"segdl() { "$SEGDL_PROGRAM" "$@"; }; SEGDL_PROGRAM=$0; pip() { cat report.json; }"# + "\n"
            + "set -o pipefail\n" + lines.joined(separator: "\n")
    }

    private static func environment(_ command: Segdl, _ origin: Origin) -> [String: String] {
        [
            "HOME": command.directory, "XDG_CONFIG_HOME": command.path("config"), "http_proxy": origin.url(""),
            "no_proxy": "", "HF_TOKEN": "hf_token",
            "URL": "http://bucket.s3.amazonaws.com/data.tar?X-Amz-Expires=60&X-Amz-Signature=old",
            "NEW_URL": "http://bucket.s3.amazonaws.com/data.tar?X-Amz-Expires=60&X-Amz-Signature=new",
            "KEYRING": command.path("keys.gpg"), "MIRROR": command.path("mirror"),
            "EASYBUILD_SOURCEPATH": command.path("easybuild"),
        ]
    }

    private static func writeFiles(_ command: Segdl, _ origin: Origin) throws {
        let hosts = ["goldsmr4.gesdisc.eosdis.nasa.gov", "urs.earthdata.nasa.gov"]
        try FileManager.default.createDirectory(
            atPath: command.path("config/segdl"), withIntermediateDirectories: true)
        try command.write(
            "insecure = true\n" + hosts.map { "resolve = \($0):\(origin.port):127.0.0.1\n" }.joined(),
            to: "config/segdl/config", mode: 0o600)
        try command.write("machine urs.earthdata.nasa.gov login name password password\n", to: ".netrc", mode: 0o600)
        try command.write(try Recipe.recorded("pip-report.json"), to: "report.json", mode: 0o600)
        try command.write(try Recipe.recorded("conda-explicit.txt"), to: "explicit.txt", mode: 0o600)
    }

    /// The detached signature of the list of checksums, and its keyring in `keys.gpg`, by GnuPG.
    private static func signature(_ command: Segdl) async throws -> [String: RoutedAnswer] {
        try command.write(try Recipe.recorded("debian-SHA512SUMS"), to: "SUMS", mode: 0o600)
        let outcome = try await command.run(
            [],
            shell: """
                export GNUPGHOME=$PWD/gpg && mkdir -m 700 gpg && gpg -q --batch --passphrase '' --quick-gen-key a@example.org &&
                gpg -q --armor --detach-sign SUMS && gpg -q --export >keys.gpg && cat SUMS.asc; s=$?
                gpgconf --kill all; exit $s
                """)
        guard outcome.status == 0 else { return [:] }
        return ["cdimage.debian.org/debian-cd/current/amd64/iso-cd/SHA512SUMS.sign": .document(outcome.output)]
    }
}
