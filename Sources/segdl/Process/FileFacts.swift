import CLinux

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// What the file system says of a file. `errno` is set if there is no value.
struct FileFacts: Hashable {
    /// Identifies the file.
    struct Number: Hashable {
        let device: UInt
        let inode: UInt
    }

    let number: Number
    let owner: uid_t
    /// In bytes.
    let length: Int64
    let isDirectory: Bool
    let isSocket: Bool
    let isPipe: Bool
    let isCharacterDevice: Bool
    /// Whether other users have any permission.
    let isOpenToOthers: Bool

    /// Of the file with this path.
    ///
    /// - Parameter followsLinks: Whether of the file that a link leads to, and not of the link.
    init?(_ path: String, followsLinks: Bool = false) {
        var facts = segdl_file_facts()
        guard segdl_file_facts(path, -1, followsLinks ? 1 : 0, &facts) == 0 else { return nil }
        self.init(facts)
    }

    init?(descriptor: CInt) {
        var facts = segdl_file_facts()
        guard segdl_file_facts(nil, descriptor, 0, &facts) == 0 else { return nil }
        self.init(facts)
    }

    private init(_ facts: segdl_file_facts) {
        self.number = Number(device: facts.device, inode: facts.inode)
        self.owner = facts.user
        self.length = facts.length
        self.isDirectory = facts.is_directory != 0
        self.isSocket = facts.is_socket != 0
        self.isPipe = facts.is_pipe != 0
        self.isCharacterDevice = facts.is_character_device != 0
        self.isOpenToOthers = facts.permissions & 0o077 != 0
    }
}
