package import SystemPackage

extension DownloadRequest.Destination {
    /// The path of the file, directory or stream; `nil` for a descriptor.
    package var path: FilePath? {
        switch self {
        case .file(let path), .directory(let path, _), .stream(let path): path
        case .descriptor: nil
        }
    }

    /// The path, `-` for standard output and a consumer in this process, or `/dev/fd/N` for another descriptor.
    package var text: String {
        switch self {
        case .file(let path), .directory(let path, _), .stream(let path): path.string
        case .descriptor(let number): number > 1 ? "/dev/fd/\(number)" : "-"
        }
    }

    /// The directory of the file; nil for a descriptor or a stream.
    package var directory: FilePath? {
        switch self {
        case .file(let path): path.removingLastComponent()
        case .directory(let directory, _): directory
        case .descriptor, .stream: nil
        }
    }

    /// The destination with a relative path resolved against a directory.
    package func resolved(in base: FilePath) -> Self {
        guard base != "." else { return self }
        switch self {
        case .file(let path): return .file(Self.join(base, path))
        case .directory(let directory, let name): return .directory(Self.join(base, directory), name: name)
        case .descriptor: return self
        case .stream(let path): return .stream(Self.join(base, path))
        }
    }

    private static func join(_ base: FilePath, _ path: FilePath) -> FilePath {
        path == "." ? base : base.pushing(path)
    }

    /// The destination without `./` at the beginning of its path, so that such spellings compare equal.
    var normalized: Self {
        switch self {
        case .file(let path): return .file(Self.trimmed(path))
        case .directory(let directory, let name): return .directory(Self.trimmed(directory), name: name)
        case .descriptor: return self
        case .stream(let path): return .stream(Self.trimmed(path))
        }
    }

    private static func trimmed(_ path: FilePath) -> FilePath {
        guard path.isRelative, path.components.first?.kind == .currentDirectory else { return path }
        var components = path.components[...]
        while components.count > 1, components.first?.kind == .currentDirectory { components.removeFirst() }
        return FilePath(root: nil, components)
    }
}

extension DownloadRequest {
    /// The path that the file gets if the response suggests no other name and no other file has it; nil for a descriptor or a
    /// stream. A template's `{id}` is the number of the download in its group, which is not known before.
    package var likelyPath: String? {
        switch self.destination {
        case .file, .directory:
            let id = self.id ?? Download.ID(rawValue: "0")
            return DestinationNaming(request: self, id: id, storage: StreamStorage()).paths.destination
        case .descriptor, .stream: return nil
        }
    }
}
