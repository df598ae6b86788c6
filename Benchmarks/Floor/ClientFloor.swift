import AsyncHTTPClient
import CLinux
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix

/// Fetches the URLs of a list into a directory with the HTTP client alone: what segdl's client and durable files cost
/// without segdl.
///
/// Each file is created, written, given an attribute, synced and renamed. Nothing is checked but the status.
@main
enum ClientFloor {
    /// The same number as in the commands that it is compared with.
    private static let tasks = 16
    private static let lengthMax = 1 << 20

    static func main() async throws {
        guard CommandLine.arguments.count == 3 else { fail("usage: segdl-benchmark-floor LIST DIRECTORY") }
        let (list, directory) = (CommandLine.arguments[1], CommandLine.arguments[2])
        let urls = try String(contentsOfFile: list, encoding: .utf8).split(separator: "\n").map(String.init)
        let loops = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = Self.tasks
        configuration.httpVersion = .http1Only
        let client = HTTPClient(eventLoopGroupProvider: .shared(loops), configuration: configuration)
        try await withThrowingTaskGroup { group in
            for first in 0..<Self.tasks {
                group.addTask {
                    for index in stride(from: first, to: urls.count, by: Self.tasks) {
                        let response = try await client.execute(HTTPClientRequest(url: urls[index]), timeout: .hours(1))
                        guard response.status == .ok else { fail("\(urls[index]) answered \(response.status)") }
                        let body = try await response.body.collect(upTo: Self.lengthMax)
                        let name = urls[index].split(separator: "/").last.map(String.init) ?? "file"
                        try store(body, in: "\(directory)/\(name)")
                    }
                }
            }
            try await group.waitForAll()
        }
        try await client.shutdown()
        try await loops.shutdownGracefully()
    }

    private static func store(_ body: ByteBuffer, in path: String) throws {
        let part = "\(path).part"
        let descriptor = open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
        check(descriptor, "open")
        let written = body.withUnsafeReadableBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
        guard written == body.readableBytes else { fail("pwrite \(part)") }
        let value = [UInt8](repeating: 0x2E, count: 180)
        // Not every file system has attributes.
        _ = fsetxattr(descriptor, "user.segdl-floor", value, value.count, 0)
        check(fdatasync(descriptor), "fdatasync")
        check(rename(part, path), "rename")
        close(descriptor)
    }

    private static func check(_ answer: CInt, _ call: String) {
        if answer < 0 { fail("\(call): \(String(cString: strerror(errno)))") }
    }

    private static func fail(_ message: String) -> Never {
        FileHandle.standardError.write(Data("segdl-benchmark-floor: \(message)\n".utf8))
        exit(1)
    }
}
