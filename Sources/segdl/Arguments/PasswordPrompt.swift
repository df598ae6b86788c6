import SegmentedDownload
import Synchronization

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Asks for passwords at the terminal, each once.
final class PasswordPrompt: Sendable {
    private let known = Mutex<[String: String]>([:])

    /// - Throws: ``DownloadError`` with code `usage` where nobody can be asked.
    func password(of user: String) throws(DownloadError) -> String {
        if let password = self.known.withLock({ $0[user] }) { return password }
        // getpass(3) reads standard input where there is no terminal, and that may be a list.
        let terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard terminal >= 0, let answer = getpass("Password for \(user.shown): ") else {
            throw DownloadError(
                .usage, "--user has no password, and there is no terminal to ask for one",
                hint: "Write --user NAME:PASSWORD, or keep it in ~/.netrc and say --netrc")
        }
        close(terminal)
        let password = String(cString: answer)
        self.known.withLock { $0[user] = password }
        return password
    }
}
