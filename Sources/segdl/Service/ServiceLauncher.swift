import CLinux
import ChildProcess
import Dispatch
import SegmentedDownload

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Starts the service in a session of its own.
struct ServiceLauncher: Sendable {
    let paths: ServicePaths

    /// Tells the service that a launcher waits for its first line, and where its messages go afterwards.
    static let variable = "SEGDL_DAEMON_LOG"
    private static let ready = "segdl: listening on "

    /// What the service writes to standard output when it answers.
    static func readyLine(at socket: String) -> String { self.ready + socket + "\n" }

    /// Starts the service, and waits until it answers.
    ///
    /// - Parameters:
    ///   - arguments: The command line without the program's name.
    ///   - directory: Relative paths begin there; nil for the home directory, which is not removed or unmounted.
    /// - Returns: The service's process identifier.
    /// - Throws: ``ServiceFailure`` with the service's own message, if it does not start.
    func start(_ arguments: [String], in directory: String? = nil) async throws(ServiceFailure) -> Int32 {
        try self.paths.prepare()
        var ends: (CInt, CInt) = (0, 0)
        let isOpen = withUnsafeMutableBytes(of: &ends) { bytes in
            pipe2(bytes.baseAddress?.assumingMemoryBound(to: CInt.self), O_CLOEXEC) == 0
        }
        guard isOpen else { throw ServiceFailure("cannot create a pipe", "", errno: errno) }
        let process: ChildProcess
        do throws(ChildProcess.SpawnFailure) {
            defer { SystemCalls.closeFile(ends.1) }
            process = try ChildProcess(
                [Self.program] + arguments, in: directory ?? getenv("HOME").map { String(cString: $0) } ?? "/",
                environment: [Self.variable: self.paths.log], output: ends.1, errors: ends.1, inNewSession: true)
        } catch {
            SystemCalls.closeFile(ends.0)
            throw ServiceFailure("the service cannot be started: \(error)")
        }
        let text = await Self.text(from: ends.0)
        let lines = text.split(whereSeparator: \.isNewline)
        if lines.contains(where: { $0.hasPrefix(Self.ready) }) { return process.identifier }
        let ending = await process.wait()
        guard let line = lines.last(where: { $0.hasPrefix("segdl: error[") }), let end = line.firstIndex(of: "]") else {
            throw ServiceFailure("the service did not start: \(ending)")
        }
        throw ServiceFailure("the service did not start" + line[line.index(after: end)...])
    }

    /// What the service writes until it answers or ends.
    private static func text(from descriptor: CInt) async -> String {
        await withCheckedContinuation { (continuation: CheckedContinuation<String, Never>) in
            DispatchQueue.global().async {
                var bytes: [UInt8] = []
                withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
                    while bytes.count < 1 << 16 {
                        let count = SystemCalls.readBytes(descriptor, buffer)
                        if count < 0, errno == EINTR { continue }
                        guard count > 0 else { break }
                        bytes += UnsafeRawBufferPointer(rebasing: buffer[..<count])
                    }
                }
                SystemCalls.closeFile(descriptor)
                continuation.resume(returning: String(decoding: bytes, as: UTF8.self))
            }
        }
    }

    /// This program's file, which may not be in `PATH`.
    static var program: String {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]
    }
}
