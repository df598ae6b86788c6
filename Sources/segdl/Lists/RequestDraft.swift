import SegmentedDownload

/// A request to which layers of options are applied, the lowest precedence first.
struct RequestDraft {
    /// The part of a layer that only counts once all its options are known.
    struct Layer {
        var user: String?
        var password: String?
        var bearer: String?
        fileprivate var cookies: [String] = []
        fileprivate var fields: Set<HTTPField.Name> = []
    }

    var request: DownloadRequest
    /// The file's path or name; nil for the name that the response suggests.
    var output: String?
    var dir = "."
    /// How the file is named if `output` is nil.
    var nameTemplate: NameTemplate?
    var layer = Layer()

    /// The request with its destination.
    var finished: DownloadRequest {
        var request = self.request
        request.destination = Path.destination(output: self.output, dir: self.dir, name: self.nameTemplate)
        return request
    }

    /// Takes file name and directory from the request's destination, so that options can change one of them.
    mutating func place() {
        switch self.request.destination {
        case .file(let path):
            self.output = path.lastComponent?.string
            self.dir = path.removingLastComponent().string
        case .directory(let directory, let template): (self.dir, self.nameTemplate) = (directory.string, template)
        case .descriptor, .stream: break
        }
    }

    /// A draft for no file in particular, to check options with.
    static func sample() throws(DownloadError) -> RequestDraft {
        RequestDraft(request: DownloadRequest(try SourceURL("http://localhost/")))
    }

    // MARK: Layers

    /// Applies a layer of options. They take precedence over those of earlier layers.
    ///
    /// - Parameter passwords: Asks for the password of a user that is given without one; nil to throw instead.
    mutating func apply(_ layer: [FileEdit], asking passwords: PasswordPrompt? = nil) throws(DownloadError) {
        self.layer = Layer()
        for edit in layer { edit.action(&self) }
        try self.endLayer(asking: passwords)
    }

    /// Sets the credentials that the layer's options give together.
    mutating func endLayer(asking passwords: PasswordPrompt? = nil) throws(DownloadError) {
        let layer = self.layer
        self.layer = Layer()
        if layer.user != nil, layer.bearer != nil {
            throw DownloadError(.usage, "user and oauth2-bearer are two ways to authenticate: give one")
        }
        if layer.password != nil, layer.user?.contains(":") ?? true {
            throw DownloadError(.usage, "password requires user = NAME without a password")
        }
        if let token = layer.bearer { self.request.credentials = .bearer(token: token) }
        guard let user = layer.user else { return }
        let parts = user.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        if let password = parts.dropFirst().first ?? layer.password {
            self.request.credentials = .basic(user: parts[0], password: password)
        } else if let passwords {
            self.request.credentials = .basic(user: parts[0], password: try passwords.password(of: parts[0]))
        } else {
            throw DownloadError(.usage, "write user = NAME:PASSWORD, or user = NAME and password = PASSWORD")
        }
    }

    /// Adds a field, instead of those of this name in earlier layers.
    mutating func addField(_ field: HTTPField) {
        if self.layer.fields.insert(field.name).inserted {
            self.request.fields.removeAll { $0.name == field.name }
        }
        self.request.fields.append(field)
    }

    /// Adds a field, instead of all others of this name.
    mutating func setField(_ field: HTTPField) {
        self.layer.fields.insert(field.name)
        self.request.fields.removeAll { $0.name == field.name }
        self.request.fields.append(field)
    }

    /// Adds a cookie to those of this layer, instead of those of earlier layers.
    mutating func addCookie(_ cookie: String) {
        self.layer.cookies.append(cookie)
        self.setField(HTTPField(name: .cookie, value: self.layer.cookies.joined(separator: "; ")))
    }

    // MARK: Lists

    /// Applies an option of a list. ``endLayer(asking:)`` must follow the last one of the entry.
    mutating func apply(_ option: InputList.Option) throws(ListProblem) {
        let (name, value) = ListKey.translated(option)
        guard let (definition, edit) = FileOption.edit(name, value) else {
            if ListKey.isOff(option) { return }
            throw ListProblem(option.place, ListKey.refusal(of: option.key))
        }
        guard let edit else {
            let shown = definition.mayBeSecret ? "" : ", not \"\(value.shownWithoutSecrets)\""
            throw ListProblem(option.place, "\(option.key) must be \(definition.expectation(insteadOf: value))\(shown)")
        }
        if definition.name == "output" {
            guard value != "-" else { throw ListProblem(option.place, "out=- is not for lists; name a file") }
            // Standard output has no name.
            if self.output == "-" { return }
        }
        edit.action(&self)
        // After each option, so that the error names its line.
        do throws(DownloadError) {
            try self.request.validate()
        } catch {
            throw ListProblem(option.place, "\(option.key): \(error.message)", code: error.code)
        }
    }
}
