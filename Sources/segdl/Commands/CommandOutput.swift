import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Standard output and standard error of a command without progress.
struct CommandOutput {
    private let lines = LineSink(descriptor: STDOUT_FILENO)
    private let errors = LineSink(descriptor: STDERR_FILENO)

    /// Runs a command and returns its status, once all output is written. An error that `body` throws is reported.
    static func run(_ body: (CommandOutput) async throws -> ExitCode) async -> ExitCode {
        let output = CommandOutput()
        defer {
            output.lines.drain()
            output.errors.drain()
        }
        do {
            return try await body(output)
        } catch {
            return output.report(error)
        }
    }

    /// Runs a command that has a client.
    ///
    /// - Parameter configure: Sets what the network options do not.
    static func withClient(
        _ network: NetworkOptions, configure: (inout DownloadConfiguration) throws -> Void = { _ in },
        _ body: (DownloadClient, CommandOutput) async throws -> ExitCode
    ) async -> ExitCode {
        await Self.run { output in
            var configuration = DownloadConfiguration()
            try configure(&configuration)
            try network.apply(to: &configuration)
            return try await withDownloadClient(configuration) { client in try await body(client, output) }
        }
    }

    /// Writes to standard output.
    func send(_ text: String) { self.lines.send(text) }

    /// Writes an error's line to standard error.
    ///
    /// - Returns: The status for the error.
    func report(_ error: any Error) -> ExitCode {
        let error = DownloadError(wrapping: error)
        self.errors.send(FailureLine(error, of: nil).text + "\n")
        return ExitCode(error.code)
    }
}
