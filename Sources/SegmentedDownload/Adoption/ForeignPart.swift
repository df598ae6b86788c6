import SegmentedDownloadCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The open and locked partial file of another program, and its control file. All methods block the thread.
struct ForeignPart: Sendable {
    let path: String
    let file: any StorageFile
    let storage: any Storage
    /// The file's status when it was opened.
    let status: StorageStatus
    let control: ControlFile?
    /// The control file's path.
    let controlPath: String?

    /// - Parameter path: The path of the partial file or of its control file.
    /// - Throws: ``DownloadError`` if the file cannot be taken over.
    init(at path: String, in storage: any Storage) throws {
        let path = try Self.data(of: path, in: storage)
        guard !path.hasSuffix(DestinationPaths.partSuffix), !path.hasSuffix(DestinationPaths.manifestSuffix) else {
            throw DownloadError(
                .exists, "\(path.printable) is a partial file of segdl itself", remedy: .resumeInterrupted)
        }
        guard let found = try storage.status(of: path) else {
            throw DownloadError(.file, "there is no file \(path.printable)")
        }
        guard found.kind == .file else {
            throw DownloadError(
                .exists, "\(path.printable) is not a regular file", hint: "Name the partial file itself")
        }
        if found.ownership.owner != storage.user,
            let failure = found.ownership.failure(user: storage.user, path: path)
        {
            throw failure
        }
        (self.controlPath, self.control) = try Self.control(of: path, in: storage)
        self.path = path
        self.storage = storage
        self.file = try storage.open(path, .update)
        let isBusy = try self.file.tryLock() == .busy
        guard !isBusy, !self.file.isOpenElsewhere() else {
            throw DownloadError(
                .exists, "another process has \(path.printable) open",
                hint: "Stop the program that downloads it, then run the command again")
        }
        self.status = try self.file.status()
        guard self.status.isSameFile(as: found), self.status.linkCount == 1 else {
            throw DownloadError(
                .exists, "\(path.printable) has several hard links, which the download would also change",
                hint: "Adopt a copy of it")
        }
    }

    /// The path of the partial file that a path means: of the file beside it if it names a control file.
    private static func data(of path: String, in storage: any Storage) throws -> String {
        for program in ControlFile.Program.allCases where path.hasSuffix(program.suffix) {
            let data = String(path.dropLast(program.suffix.count))
            if try storage.status(of: data)?.kind == .file { return data }
        }
        return path
    }

    /// The control file beside a partial file.
    ///
    /// - Throws: ``DownloadError`` with code `integrity` if the file with its name is not one.
    static func control(
        of path: String, in storage: any Storage
    ) throws -> (path: String?, file: ControlFile?) {
        for program in ControlFile.Program.allCases {
            let own = path + program.suffix
            guard try storage.status(of: own)?.kind == .file else { continue }
            let file = try storage.open(own, .read)
            defer { file.close() }
            guard let control = ControlFile(program, try file.contents(limit: ControlFile.lengthMaximum + 1)) else {
                throw DownloadError(
                    .integrity, "\(own.printable) is not a readable control file of \(program.rawValue)",
                    hint: "Move it away to have the bytes compared without it")
            }
            return (own, control)
        }
        return (nil, nil)
    }

    /// The bytes that the other program has written.
    struct Content: Sendable {
        /// All of them, ordered and disjoint.
        var runs: [Range<Int64>]
        /// The runs of zeros in them that may be unwritten pages or parts of pages.
        var zeros: [Range<Int64>]
        /// Those that the control file does not state: the program may have been killed before it wrote that.
        var unstated: [Range<Int64>]
    }

    /// The bytes that the other program has written, of a resource of this length: those that its control file states, and
    /// all others that are neither holes nor zeros. Without a control file all that are no holes.
    ///
    /// - Throws: ``DownloadError`` if the file cannot be a part of such a resource.
    func content(of length: Int64, unless interruption: Latch) throws -> Content {
        let own = self.status.length
        guard own <= length else {
            throw DownloadError(
                .exists, "\(self.path.printable) has \(own) bytes, and the server's file has \(length)",
                hint: "It is another file")
        }
        if let stated = self.control?.completeLength, stated != length {
            throw DownloadError(
                .exists,
                "\((self.controlPath ?? "").printable) is for a file of \(stated) bytes, and the server's has \(length)",
                hint: "It is another file")
        }
        let data = try self.file.data()
        guard let control else {
            let runs = try self.trimmed(data)
            return Content(runs: runs, zeros: try self.zeros(in: runs, unless: interruption), unstated: [])
        }
        // What is both stated and no hole.
        let stated = control.present(in: own).subtracting(data.complement(in: own))
        let others = data.subtracting(stated)
        let unstated = try self.trimmed(others.subtracting(try self.zeros(in: others, unless: interruption)))
        return Content(
            runs: (stated + unstated).merged(), zeros: try self.zeros(in: stated, unless: interruption),
            unstated: unstated)
    }

    /// The runs without zeros at their ends. What was written of the first or the last page is not known otherwise.
    private func trimmed(_ runs: [Range<Int64>]) throws -> [Range<Int64>] {
        try runs.compactMap { run in
            var (start, end) = (run.lowerBound, run.upperBound)
            if start > 0 {
                let page = try self.page(start..<min(start + Self.pageLength, end))
                start += Int64(page.prefix { $0 == 0 }.count)
            }
            if end < self.status.length {
                let page = try self.page(max(end - Self.pageLength, start)..<end)
                end -= Int64(page.reversed().prefix { $0 == 0 }.count)
            }
            return start < end ? start..<end : nil
        }
    }

    private func page(_ range: Range<Int64>) throws -> [UInt8] {
        var bytes: [UInt8] = []
        guard !range.isEmpty else { return bytes }
        try self.read([range], unless: Latch()) { piece, _ in bytes += Array(piece) }
        return bytes
    }

    /// The runs of zeros that may not have been written: pages, and the beginnings and ends of pages.
    private func zeros(in runs: [Range<Int64>], unless interruption: Latch) throws -> [Range<Int64>] {
        var zeros: [Range<Int64>] = []
        func note(_ start: Int64, _ end: Int64) {
            if let last = zeros.last, last.upperBound == start {
                zeros[zeros.count - 1] = last.lowerBound..<end
            } else {
                zeros.append(start..<end)
            }
        }
        try self.read(runs, unless: interruption) { bytes, offset in
            var start = 0
            while start < bytes.count {
                // Pages are aligned in the file.
                let place = offset + Int64(start)
                let end = min(start + Int(Self.pageLength - place % Self.pageLength), bytes.count)
                let page = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
                if page.isZero {
                    note(place, place + Int64(page.count))
                } else {
                    let (first, last) = (page.zerosAtStart, page.zerosAtEnd)
                    if first >= Self.zerosMin { note(place, place + Int64(first)) }
                    let after = place + Int64(page.count)
                    if last >= Self.zerosMin { note(after - Int64(last), after) }
                }
                start = end
            }
        }
        return zeros
    }

    /// 4 KiB: what a file system loses or reserves at once.
    private static let pageLength: Int64 = 4096

    /// 16: fewer zeros at the end of a page are common in any content.
    private static let zerosMin = 16

    /// The claims to the bytes of these runs.
    ///
    /// - Parameter copy: The file to which the bytes are written at the same offsets; nil for none.
    func claims(
        to runs: [Range<Int64>], copyingTo copy: (any StorageFile)? = nil, unless interruption: Latch
    ) throws -> [Claim] {
        var claims: [Claim] = []
        try self.read(runs, unless: interruption) { bytes, offset in
            try copy?.writeFully(bytes, at: offset)
            var crc = CRC32()
            crc.update(bytes)
            claims.append(
                Claim(offset: offset, length: Int64(bytes.count), crc: crc, mark: Claim.adoptedMark))
        }
        return claims
    }

    /// Passes the bytes of runs to `body` in pieces, each within one block.
    private func read(
        _ runs: [Range<Int64>], unless interruption: Latch, _ body: (UnsafeRawBufferPointer, Int64) throws -> Void
    ) throws {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(BlockLayout.blockLength), alignment: 4096)
        defer { buffer.deallocate() }
        for run in runs {
            var offset = run.lowerBound
            while offset < run.upperBound {
                if interruption.isRaised { throw DownloadError(.cancelled, "reading the partial file was interrupted") }
                let end = min(BlockLayout.blockEnd(after: offset), run.upperBound)
                let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(end - offset)])
                guard try self.file.readFully(into: piece, at: offset) == piece.count else { throw self.changed }
                try body(UnsafeRawBufferPointer(piece), offset)
                offset = end
            }
        }
    }

    /// Throws if the file or its path changed since it was opened.
    func checkUnchanged() throws {
        guard try self.file.status().isSame(as: self.status),
            try self.storage.status(of: self.path)?.isSame(as: self.status) == true
        else { throw self.changed }
    }

    private var changed: DownloadError {
        DownloadError(
            .file, "\(self.path.printable) changed while it was being read",
            hint: "Stop the program that downloads it, then run the command again")
    }
}

extension UnsafeRawBufferPointer {
    /// Whether all bytes are zero.
    fileprivate var isZero: Bool {
        guard let base = self.baseAddress, self[0] == 0 else { return false }
        return memcmp(base, base + 1, self.count - 1) == 0
    }

    fileprivate var zerosAtStart: Int { self.firstIndex { $0 != 0 } ?? self.count }

    fileprivate var zerosAtEnd: Int { self.lastIndex { $0 != 0 }.map { self.count - 1 - $0 } ?? self.count }
}
