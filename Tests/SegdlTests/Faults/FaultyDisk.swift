import Foundation
import TestSupport

/// A library that makes system calls for writing and syncing fail, built by the tests.
enum FaultyDisk {
    static let compiler: String? = ["/usr/bin/cc", "/usr/bin/clang", "/opt/swift/usr/bin/clang"]
        .first { FileManager.default.isExecutableFile(atPath: $0) }

    /// The path of the built library.
    static let library = Task {
        let source = FaultCase.directory.appendingPathComponent("FaultyDisk.c").path
        let path = NSTemporaryDirectory() + "segdl-faulty-disk-\(ProcessInfo.processInfo.processIdentifier).so"
        let build = try await Child.run(
            [Self.compiler ?? "/usr/bin/cc", "-shared", "-fPIC", "-O1", "-o", path, source], log: path)
        guard build.status == 0 else { throw FaultError("FaultyDisk.c does not compile: \(build)") }
        return path
    }
}
