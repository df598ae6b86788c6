import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The processor time and peak memory of this process between two moments.
struct ProcessFigures {
    private let processor: Double

    static func begin() -> ProcessFigures {
        // "5" resets the peak (proc(5), clear_refs).
        let file = SystemCalls.openFile("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC)
        if file >= 0 {
            _ = "5".utf8.withContiguousStorageIfAvailable { SystemCalls.writeBytes(file, UnsafeRawBufferPointer($0)) }
            close(file)
        }
        return ProcessFigures(processor: Self.processorNow)
    }

    func end() -> (processor: Double, peak: Int64?) { (Self.processorNow - self.processor, Self.peakNow) }

    private static var processorNow: Double {
        var usage = rusage()
        #if canImport(Musl)
            getrusage(RUSAGE_SELF, &usage)
        #else
            getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        #endif
        return [usage.ru_utime, usage.ru_stime].reduce(0) { $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1e6 }
    }

    /// `VmHWM` of proc(5).
    private static var peakNow: Int64? {
        let file = SystemCalls.openFile("/proc/self/status", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        return withUnsafeTemporaryAllocation(byteCount: 1 << 14, alignment: 1) { buffer in
            let count = SystemCalls.readBytes(file, buffer)
            guard count > 0 else { return nil }
            let text = String(decoding: UnsafeRawBufferPointer(rebasing: buffer[..<count]), as: UTF8.self)
            let line = text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
            return line.flatMap { Int64($0.filter(\.isNumber)) }.map { $0 * 1024 }
        }
    }
}
