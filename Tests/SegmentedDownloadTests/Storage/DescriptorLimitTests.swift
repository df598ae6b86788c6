import Foundation
import SegmentedDownloadCore
import TestSupport
import Testing

@testable import SegmentedDownload

@Suite("Descriptors and connections")
struct DescriptorLimitTests {
    @Test(
        "Files and connections fit into the limit of descriptors, with those already open",
        arguments: [
            // descriptors, files, connections
            (1024, 5, 985), (64, 5, 25), (64, 1, 37), (1024, 500, 250), (40, 5, 4), (30, 5, 1), (24, 5, 1), (3, 5, 1),
            (0, 1, 1),
        ])
    func connections(descriptors: Int, files: Int, expected: Int) {
        let connections = DescriptorLimit.connections(files: files, descriptors: descriptors)
        #expect(connections == expected)
        let together = min(files, DescriptorLimit.files(beside: connections, descriptors: descriptors))
        #expect(connections == 1 || together == 1 || 24 + connections + 3 * together <= descriptors)
    }

    @Test(
        "Event loops have at most a quarter of the descriptors",
        arguments: [(1024, 63, 63), (256, 63, 19), (64, 7, 3), (24, 7, 0), (0, 7, 0)])
    func loops(descriptors: Int, count: Int, expected: Int) {
        #expect(DescriptorLimit.loopsAllowed(count, descriptors: descriptors) == expected)
    }

    @Test("The largest possible limits do not overflow")
    func unlimited() {
        #expect(DescriptorLimit.connections(files: 5, descriptors: .max) > 1 << 40)
        #expect(DescriptorLimit.connections(files: .max, descriptors: 1024) == 250)
    }

    // MARK: Descriptors that are used up

    /// Set in the process that runs only ``usedUp()``.
    private static let variable = "SEGDL_TESTS_USE_UP_DESCRIPTORS"

    @Test("Used-up descriptors are detected, in a process of its own because all tests share the limit")
    func inOwnProcess() async throws {
        try await withTemporaryDirectory { directory in
            let tests = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath().path
            let outcome = try await Child.run(
                [tests, "--testing-library", "swift-testing", "--filter", "DescriptorLimitTests/usedUp"],
                log: directory + "/log", environment: [Self.variable: "1"])
            #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
        }
    }

    @Test(
        "A download needs six free descriptors; with fewer the failure names a limit that suffices",
        .enabled(if: ProcessInfo.processInfo.environment[variable] != nil, "run by inOwnProcess()"))
    func usedUp() throws {
        try Self.lowerLimit(to: 64)
        // Each attempt closes what it opened.
        for _ in 0..<64 { try DescriptorLimit.check() }
        var held = Self.useUp()
        var failures: [DownloadError?] = []
        for _ in 0...6 {
            do throws(DownloadError) {
                try DescriptorLimit.check()
                failures.append(nil)
            } catch {
                failures.append(error)
            }
            if let last = held.popLast() { close(last) }
        }
        for descriptor in held { close(descriptor) }
        #expect(failures.map { $0?.code } == Array(repeating: .file, count: 6) + [nil])
        #expect(failures[0]?.hint == "Raise the limit with ulimit -n 128")
    }

    private static func lowerLimit(to count: UInt) throws {
        let resource = CInt(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        let wasRead = getrlimit(resource, &limit) == 0
        limit.rlim_cur = count
        let isSet = setrlimit(resource, &limit) == 0
        try #require(wasRead && isSet)
    }

    /// Opens descriptors until no more can be opened.
    private static func useUp() -> [CInt] {
        var descriptors: [CInt] = []
        while case let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC), descriptor >= 0 {
            descriptors.append(descriptor)
        }
        return descriptors
    }
}
