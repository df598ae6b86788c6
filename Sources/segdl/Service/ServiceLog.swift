import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The log file of a service that a launcher started.
///
/// Before each message the file's path is compared with the open file. If another program renamed or removed the file, as
/// logrotate does, a new one is begun; a long one is renamed, and replaces the one before it. So no signal is needed, and the
/// two files stay short however long the service runs.
final class ServiceLog: Sendable {
    /// 1 MiB: some thousand messages.
    private static let lengthMax: Int64 = 1 << 20

    private let path: String
    private let descriptors: [CInt]
    private let lengthMax: Int64
    private let isBegun = Latch()

    /// - Parameter descriptors: Are replaced by the file. The first one is examined.
    init(_ path: String, descriptors: [CInt] = [STDERR_FILENO, STDOUT_FILENO], lengthMax: Int64 = ServiceLog.lengthMax)
    {
        self.path = path
        self.descriptors = descriptors
        self.lengthMax = lengthMax
    }

    /// Replaces the descriptors, which closes the launcher's pipe. If there can be no file, messages are lost.
    func begin() {
        if let facts = FileFacts(self.path), facts.length > self.lengthMax { self.setAside() }
        if !self.open() { self.use(SystemCalls.openFile("/dev/null", O_WRONLY | O_CLOEXEC)) }
        self.isBegun.raise()
    }

    /// Begins another file if the path no longer leads to the open one, or that one is long. Call it before each message,
    /// from one thread at a time.
    func prepare() {
        guard self.isBegun.isRaised else { return }
        if let named = FileFacts(self.path), named.number == FileFacts(descriptor: self.descriptors[0])?.number {
            guard named.length > self.lengthMax else { return }
            self.setAside()
        }
        _ = self.open()
    }

    private func setAside() { rename(self.path, self.path + ".1") }

    /// - Returns: Whether the file could be opened. If not, the descriptors stay as they are.
    private func open() -> Bool {
        self.use(SystemCalls.openFile(self.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0o600))
    }

    @discardableResult
    private func use(_ file: CInt) -> Bool {
        guard file >= 0 else { return false }
        for descriptor in self.descriptors { dup2(file, descriptor) }
        SystemCalls.closeFile(file)
        return true
    }
}
