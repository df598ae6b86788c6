/// The owner and the permission bits of a file, which determine whether its content is trusted.
///
/// A part, a manifest or the record of a finished file is trusted only if no other user could have written it. In a
/// directory that several users may write to, any of them could have planted it.
package struct Ownership: Hashable, Sendable {
    package let owner: UInt32
    /// The nine permission bits, set-user-ID, set-group-ID and sticky.
    package let permissions: UInt32

    package init(owner: UInt32, permissions: UInt32) {
        self.owner = owner
        self.permissions = permissions
    }

    /// Write permission for group and others. With an access control list, the group's bit is the mask of all its
    /// entries.
    package static let foreignWrite: UInt32 = 0o022

    /// Without write permissions that every new file in its place gets.
    ///
    /// - Parameter granted: The permission bits of a new file: of the umask, or of the directory's default access control list.
    package func excusing(_ granted: UInt32) -> Ownership {
        Ownership(owner: self.owner, permissions: self.permissions & ~(granted & Self.foreignWrite))
    }

    /// The reason why the file is not trusted, as a clause for a message; nil if it is trusted.
    package func objection(user: UInt32) -> String? {
        guard self.owner == user else { return "belongs to user \(self.owner), not to user \(user)" }
        guard self.permissions & Self.foreignWrite == 0 else {
            return "may be written by other users (mode \(String(self.permissions & 0o777, radix: 8)))"
        }
        return nil
    }

    /// The failure to report for a file that is not trusted; nil if it is trusted.
    package func failure(user: UInt32, path: String) -> DownloadError? {
        self.objection(user: user).map { why in
            DownloadError(
                .exists, "\(path.printable) \(why): its content is not trusted. It stays as it is",
                remedy: self.owner == user ? .trustOrMoveAway : .moveAwayOrChooseName)
        }
    }
}
