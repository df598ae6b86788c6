import Foundation

/// One step of a case: it runs the command, or changes its environment.
///
/// The first key names the step, the others are its details; lengths are written as in the origin's URLs.
enum FaultStep: Decodable, Sendable {
    case run(FaultRun)
    /// Waits until the origin has sent this number of bytes of body since the last run began.
    case sent(Int64)
    /// Waits until the origin has received this number of requests since the last run began.
    case requested(Int)
    /// Waits until the command, run with `--json`, reports this number of bytes.
    case done(Int64)
    case signal(Int32)
    /// Serves other content at a path.
    case replace(String, seed: UInt64, size: Int64?, etag: String?)
    /// Resets all connections of the origin.
    case disconnect
    case write(String, text: String)
    /// Writes this number of bytes of content, as far as they fit.
    case fill(String, size: Int64)
    /// Changes a file, whose modification time may stay.
    case overwrite(String, at: Int64, text: String, keepsTime: Bool)
    case truncate(String, to: Int64)
    case remove(String)
    case rename(String, to: String)
    case link(String, target: String)
    case directory(String)
    /// Mounts an empty file system in memory.
    case mount(String, options: String)
    /// Requires that the command has not mapped a file into memory.
    case unmapped(String)

    private enum Key: String, CodingKey, CaseIterable {
        case run, sent, requested, done, signal, replace, disconnect, write, fill, overwrite, truncate, remove, rename
        case link, directory, mount, unmapped
        case seed, size, etag, text, at, time, to, target, options
    }

    private static let signals: [String: Int32] = [
        "INT": SIGINT, "TERM": SIGTERM, "HUP": SIGHUP, "KILL": SIGKILL, "STOP": SIGSTOP, "CONT": SIGCONT,
    ]

    init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: Key.self)
        guard !fields.contains(.run) else {
            self = .run(try FaultRun(from: decoder))
            return
        }
        func text(_ key: Key) throws -> String { try fields.decode(String.self, forKey: key) }
        func length(_ key: Key) throws -> Int64 { try Self.length(try text(key)) }
        guard let key = Key.allCases.first(where: { fields.contains($0) }) else { throw FaultError("an empty step") }
        switch key {
        case .sent: self = .sent(try length(.sent))
        case .requested: self = .requested(try fields.decode(Int.self, forKey: .requested))
        case .done: self = .done(try length(.done))
        case .signal:
            let name = try text(.signal)
            guard let number = Self.signals[name] else { throw FaultError("no signal \(name)") }
            self = .signal(number)
        case .replace:
            let size = fields.contains(.size) ? try length(.size) : nil
            let etag = fields.contains(.etag) ? try text(.etag) : nil
            self = .replace(
                try text(.replace), seed: try fields.decode(UInt64.self, forKey: .seed), size: size, etag: etag)
        case .disconnect: self = .disconnect
        case .write: self = .write(try text(.write), text: try text(.text))
        case .fill: self = .fill(try text(.fill), size: try length(.size))
        case .overwrite:
            let keepsTime = fields.contains(.time)
            guard try !keepsTime || text(.time) == "kept" else { throw FaultError("a time can only be kept") }
            self = .overwrite(
                try text(.overwrite), at: try length(.at), text: try text(.text), keepsTime: keepsTime)
        case .truncate: self = .truncate(try text(.truncate), to: try length(.to))
        case .remove: self = .remove(try text(.remove))
        case .rename: self = .rename(try text(.rename), to: try text(.to))
        case .link: self = .link(try text(.link), target: try text(.target))
        case .directory: self = .directory(try text(.directory))
        case .mount: self = .mount(try text(.mount), options: try text(.options))
        case .unmapped: self = .unmapped(try text(.unmapped))
        case .run, .seed, .size, .etag, .text, .at, .time, .to, .target, .options:
            throw FaultError("a step cannot begin with \(key.rawValue)")
        }
    }

    /// A number of bytes with an optional K, M, G or T.
    static func length(_ text: String) throws -> Int64 {
        let exponents: [Character: Int64] = ["K": 10, "M": 20, "G": 30, "T": 40]
        let exponent = text.last.flatMap { exponents[$0] }
        guard let value = Int64(exponent == nil ? text[...] : text.dropLast()) else {
            throw FaultError("\(text) is not a number of bytes")
        }
        return value << (exponent ?? 0)
    }
}

/// One run of the command, the steps during it, and its expected results.
struct FaultRun: Decodable, Sendable {
    /// The arguments.
    var run: [String]
    /// A script for bash that runs the command as `"$0" "$@"`.
    var shell: String?
    /// The disk's fault, for the library that is loaded before the C library.
    var disk: String?
    var meanwhile: [FaultStep]
    /// The exit status, or minus the number of the signal that ended the command.
    var exit: Int32
    /// The output contains each of these.
    var says: [String]
    /// The output contains none of these.
    var hides: [String]
    /// The number of requests to the origin, at least and at most.
    var requests: ClosedRange<Int>?
    /// The same for the other origin.
    var otherRequests: ClosedRange<Int>?
    /// The origin received fields with these values.
    var sent: [String]
    /// No field that the other origin received contains any of these.
    var unsent: [String]

    private enum Key: String, CodingKey, CaseIterable {
        case run, shell, disk, meanwhile, exit, says, hides, requests, otherRequests, sent, unsent
    }

    private struct AnyKey: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }
        init?(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    init(from decoder: any Decoder) throws {
        for key in try decoder.container(keyedBy: AnyKey.self).allKeys where Key(rawValue: key.stringValue) == nil {
            throw FaultError("a run has no \(key.stringValue)")
        }
        let fields = try decoder.container(keyedBy: Key.self)
        func texts(_ key: Key) throws -> [String] { try fields.decodeIfPresent([String].self, forKey: key) ?? [] }
        func range(_ key: Key) throws -> ClosedRange<Int>? {
            guard let bounds = try fields.decodeIfPresent([Int].self, forKey: key) else { return nil }
            guard bounds.count == 2, bounds[0] <= bounds[1] else { throw FaultError("\(bounds) is not a range") }
            return bounds[0]...bounds[1]
        }
        self.run = try fields.decode([String].self, forKey: .run)
        self.shell = try fields.decodeIfPresent(String.self, forKey: .shell)
        self.disk = try fields.decodeIfPresent(String.self, forKey: .disk)
        self.meanwhile = try fields.decodeIfPresent([FaultStep].self, forKey: .meanwhile) ?? []
        self.exit = try fields.decode(Int32.self, forKey: .exit)
        self.says = try texts(.says)
        self.hides = try texts(.hides)
        self.requests = try range(.requests)
        self.otherRequests = try range(.otherRequests)
        self.sent = try texts(.sent)
        self.unsent = try texts(.unsent)
    }
}

/// What is left at a path.
enum FaultRemains: Decodable, Sendable {
    /// A file with any content.
    case present
    /// A file with the content it had before the last run.
    case unchanged
    case directory
    case link(String)
    case text(String)
    case content(seed: UInt64, size: Int64)
    /// A sparse file with the right first bytes after some offsets.
    case pieces(seed: UInt64, offsets: [Int64], length: Int64)

    private enum Key: String, CodingKey {
        case link, text, seed, size, at
    }

    init(from decoder: any Decoder) throws {
        if let word = try? decoder.singleValueContainer().decode(String.self) {
            switch word {
            case "present": self = .present
            case "unchanged": self = .unchanged
            case "directory": self = .directory
            default: throw FaultError("unknown remains \(word)")
            }
            return
        }
        let fields = try decoder.container(keyedBy: Key.self)
        if let target = try fields.decodeIfPresent(String.self, forKey: .link) {
            self = .link(target)
        } else if let text = try fields.decodeIfPresent(String.self, forKey: .text) {
            self = .text(text)
        } else {
            let seed = try fields.decode(UInt64.self, forKey: .seed)
            let size = try FaultStep.length(try fields.decode(String.self, forKey: .size))
            guard let offsets = try fields.decodeIfPresent([String].self, forKey: .at) else {
                self = .content(seed: seed, size: size)
                return
            }
            self = .pieces(seed: seed, offsets: try offsets.map { try FaultStep.length($0) }, length: size)
        }
    }
}
