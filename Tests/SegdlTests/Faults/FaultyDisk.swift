import Foundation

/// A library that makes the system's calls for writing and syncing fail, built on the spot.
enum FaultyDisk {
    static let compiler: String? = ["/usr/bin/cc", "/usr/bin/clang", "/opt/swift/usr/bin/clang"]
        .first { FileManager.default.isExecutableFile(atPath: $0) }

    /// The path of the built library.
    static let library = Result<String, any Error> {
        let source = FaultCase.directory.appendingPathComponent("FaultyDisk.c").path
        let path = NSTemporaryDirectory() + "segdl-faulty-disk-\(ProcessInfo.processInfo.processIdentifier).so"
        let process = Process()
        process.executableURL = URL(fileURLWithPath: Self.compiler ?? "/usr/bin/cc")
        process.arguments = ["-shared", "-fPIC", "-O1", "-o", path, source]
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw FaultError("FaultyDisk.c does not compile") }
        return path
    }
}
