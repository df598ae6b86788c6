import SegmentedDownload
import Synchronization

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Asks for passwords at the terminal, once for each user.
final class PasswordPrompt: Sendable {
    private let known = Mutex<[String: String]>([:])

    /// - Throws: ``DownloadError`` with code `usage` if there is no terminal.
    func password(of user: String) throws(DownloadError) -> String {
        if let password = self.known.withLock({ $0[user] }) { return password }
        // Without a terminal, getpass(3) reads standard input, which may be a list.
        let terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard terminal >= 0, let answer = getpass("Password for \(user.shown): ") else {
            throw DownloadError(
                .usage, "--user has no password, and there is no terminal to ask for one",
                hint: "Write --user NAME:PASSWORD, or put the password in ~/.netrc and use --netrc")
        }
        close(terminal)
        let password = String(cString: answer)
        self.known.withLock { $0[user] = password }
        return password
    }
}
