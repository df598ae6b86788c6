import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The figures of one run with a number of segments.
struct BenchFigures: Hashable {
    /// Seconds from the first request.
    var seconds = 0.0
    var bytes: Int64 = 0
    /// Seconds of processor time, in user space and in the kernel.
    var processor = 0.0
    /// The peak of this process's resident memory, in bytes; nil if the system does not report it.
    var peak: Int64?
    var connectionsPeak = 0

    /// Bytes per second.
    var rate: Double { Double(self.bytes) / max(self.seconds, 1e-6) }
    /// Seconds of processor time per GiB.
    var processorPerGibibyte: Double { self.bytes > 0 ? self.processor / Double(self.bytes) * 1_073_741_824 : 0 }
}

/// Fetches a file with a number of segments for a limited time, and deletes it.
struct BenchTrial {
    enum Outcome {
        case measured(BenchFigures)
        /// A signal ended the run.
        case interrupted(CInt)
    }

    var request: DownloadRequest
    let configuration: DownloadConfiguration
    let limit: Duration

    /// Why a run ended.
    private enum End {
        case complete
        case timeUp
        case failed(DownloadError)
        case signal(CInt)
    }

    /// - Throws: The error of the download.
    func run(
        _ segments: DownloadOptions.Segments, until signals: SignalSource
    ) async throws(DownloadError) -> Outcome {
        var request = self.request
        request.segments = segments
        let path = if case .file(let path) = request.destination { path.string } else { "" }
        defer { unlink(path) }
        // A client of its own, so that runs do not share connections or measurements of the server.
        let (events, limit, configuration) = (signals.events, self.limit, self.configuration)
        let result: Result<(End, BenchFigures), any Error>
        do {
            result = .success(
                try await withDownloadClient(configuration) { client in
                    try await client.withGroup { [request] group in
                        let process = ProcessFigures.begin()
                        let start = ContinuousClock.now
                        let download = try group.add(request)
                        let end = await Self.end(of: download, limit: limit, events)
                        var figures = BenchFigures()
                        figures.seconds = (ContinuousClock.now - start) / .seconds(1)
                        figures.bytes = download.snapshot.bytesDone
                        figures.connectionsPeak = end.connectionsPeak
                        await download.cancel(keepingPartial: false)
                        (figures.processor, figures.peak) = process.end()
                        return (end.end, figures)
                    }
                })
        } catch {
            result = .failure(error)
        }
        switch result {
        case .success((.complete, let figures)), .success((.timeUp, let figures)): return .measured(figures)
        case .success((.signal(let number), _)): return .interrupted(number)
        case .success((.failed(let error), _)): throw error
        case .failure(let error as DownloadError): throw error
        case .failure(let error): throw DownloadError(.internal, "\(error)".shown)
        }
    }

    /// Waits for the file, the time or a signal, whichever comes first.
    private static func end(
        of download: Download, limit: Duration, _ signals: AsyncStream<SignalSource.Event>
    ) async -> (end: End, connectionsPeak: Int) {
        await withTaskGroup(of: (End, Int)?.self) { group in
            group.addTask {
                var peak = 0
                for await event in download.events {
                    switch event {
                    case .progress(let progress): peak = max(peak, progress.connections)
                    case .completed(let result): return (.complete, max(peak, result.connectionsPeak))
                    case .failed(let error, _): return (.failed(error), peak)
                    default: break
                    }
                }
                return Task.isCancelled ? (.timeUp, peak) : nil
            }
            group.addTask {
                try? await Task.sleep(for: limit)
                return Task.isCancelled ? nil : (.timeUp, 0)
            }
            group.addTask {
                for await case .stop(let number) in signals { return (.signal(number), 0) }
                return nil
            }
            var end: End?
            var peak = 0
            for await result in group {
                guard let result else { continue }
                end = end ?? result.0
                peak = max(peak, result.1)
                group.cancelAll()
            }
            return (end ?? .timeUp, peak)
        }
    }
}
