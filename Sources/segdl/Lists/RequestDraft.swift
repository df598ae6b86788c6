import ArgumentParser
import SegmentedDownload

/// A request in the making: what the command line says, and what a list says otherwise of one file.
struct RequestDraft {
    var request: DownloadRequest
    /// The file's path or name, absent for the name that the response suggests.
    var output: String?
    var dir: String
    /// How the file is named where `output` does not name it.
    var nameTemplate: NameTemplate?

    /// The request once all is said.
    var finished: DownloadRequest {
        var request = self.request
        request.destination = Path.destination(output: self.output, dir: self.dir, name: self.nameTemplate)
        return request
    }

    /// Does what an option of a list says.
    mutating func apply(_ option: InputList.Option) throws(ListProblem) {
        guard let key = ListKey(rawValue: option.key) else {
            throw ListProblem(option.place, ListKey.refusal(of: option.key))
        }
        switch key {
        case .out:
            let path = try option.outputPath
            // What goes to standard output has no name.
            if self.output != "-" { self.output = path }
        case .dir: self.dir = try option.text("a directory")
        case .checksum: self.request.digests.append(try option.value(as: "ALGO=HEX, such as sha-256=9f86…"))
        case .header: self.request.fields.append(try option.field(option.value))
        case .userAgent: self.replace(try option.field("User-Agent: \(option.value)"))
        case .referer: self.replace(try option.field("Referer: \(option.value)"))
        case .segments, .split:
            self.request.segments = try option.value("N or auto", as: SegmentCount.self).segments
        case .priority: self.request.priority = try option.value("above 0 and at most 1", as: Priority.self).value
        case .id: self.request.id = Download.ID(rawValue: try option.text("a name"))
        case .retry, .tries: self.request.retries = try option.value("a number", as: RetryCount.self).count
        case .limitRate, .maxDownloadLimit:
            self.request.bytesPerSecond = try option.value("a rate such as 500k or 2M/s", as: ByteRate.self).limit
        case .userInfo:
            let info = try option.value("KEY=VALUE", as: UserInfo.self)
            self.request.userInfo[info.key] = info.value
        case .ifExists: self.request.ifExists = try option.oneOf()
        case .continuation: self.request.continuation = try option.continuation
        case .onChange: self.request.onChange = try option.oneOf()
        case .minSplitSize: self.request.splitLengthMinimum = try option.size
        case .maxFilesize: self.request.lengthMaximum = try option.size
        case .stallTimeout: self.request.stallTimeout = try option.time
        case .maxTime: self.request.timeLimit = try option.time
        case .fileAllocation:
            let allocation: TransferOptions.FileAllocation = try option.oneOf()
            self.request.allocates = allocation.allocates
        }
        // After each option, so that the line that is to blame is named.
        do throws(DownloadError) {
            try self.request.validate()
        } catch {
            throw ListProblem(option.place, "\(option.key): \(error.message)", code: error.code)
        }
    }

    private mutating func replace(_ field: (name: String, value: String)) {
        self.request.fields.removeAll { $0.name.lowercased() == field.name.lowercased() }
        self.request.fields.append(field)
    }
}

extension InputList.Option {
    /// The value as the command line would read it.
    ///
    /// - Parameter expected: what it should be, for the message.
    fileprivate func value<Value: ExpressibleByArgument>(
        _ expected: String, as type: Value.Type
    ) throws(ListProblem) -> Value {
        guard let value = Value(argument: self.value) else {
            throw ListProblem(self.place, "\(self.key) is \(expected), not \"\(self.value.shown)\"")
        }
        return value
    }

    fileprivate func value<Value: ExpressibleByArgument>(as expected: String) throws(ListProblem) -> Value {
        try self.value(expected, as: Value.self)
    }

    fileprivate func oneOf<Value: ExpressibleByArgument & CaseIterable & RawRepresentable<String>>() throws(ListProblem)
        -> Value
    {
        try self.value("one of \(Value.allCases.map(\.rawValue).joined(separator: ", "))", as: Value.self)
    }

    fileprivate func text(_ expected: String) throws(ListProblem) -> String {
        guard !self.value.isEmpty else { throw ListProblem(self.place, "\(self.key) is \(expected), and empty") }
        return self.value
    }

    fileprivate var time: Duration {
        get throws(ListProblem) { try self.value("a time such as 30 or 2m", as: Seconds.self).duration }
    }

    fileprivate var size: Int64 {
        get throws(ListProblem) {
            let size = try self.value("a size such as 512k or 4M", as: ByteCount.self)
            guard size.bytes > 0 else { throw ListProblem(self.place, "\(self.key) is at least 1") }
            return size.bytes
        }
    }

    fileprivate var outputPath: String {
        get throws(ListProblem) {
            let path = try self.text("a file's path")
            guard path != "-" else { throw ListProblem(self.place, "out=- is not for lists; name a file") }
            return path
        }
    }

    fileprivate func field(_ text: String) throws(ListProblem) -> (name: String, value: String) {
        guard let field = HeaderField(argument: text) else {
            throw ListProblem(self.place, "\(self.key) gives no header field (NAME: VALUE): \"\(text.shown)\"")
        }
        return (field.name, field.value)
    }

    /// Also aria2's `true` and `false`.
    fileprivate var continuation: DownloadOptions.Continuation {
        get throws(ListProblem) {
            switch self.value {
            case "true": .auto
            case "false": .no
            default: try self.oneOf()
            }
        }
    }
}
