package import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What all runs of a job must agree on: a file that one run finished is skipped by the others.
///
/// Options in the list need no place here: an entry with other options is another entry.
package struct JobSettings: Hashable, Sendable {
    /// 64 KiB: more than any path needs.
    static let lengthMax = 64 << 10

    /// A member that is missing is absent, as in the records of earlier versions.
    private struct Fields: Codable {
        var v: Int
        var dir: String
        var part: DownloadOptions.Part?
        var names: String?
    }

    /// The absolute path of the directory for files.
    package var directory: String
    /// The part of each file that is saved; nil for whole files.
    package var part: DownloadOptions.Part?
    /// The text of the template for the files' names, absent if they have their own.
    package var nameTemplate: String?

    package init(directory: String, part: DownloadOptions.Part? = nil, nameTemplate: String? = nil) {
        (self.directory, self.part, self.nameTemplate) = (directory, part, nameTemplate)
    }

    init?(_ bytes: [UInt8]) {
        guard let fields = try? JSONDecoder().decode(Fields.self, from: Data(bytes)), fields.v == 1 else { return nil }
        self.init(directory: fields.dir, part: fields.part, nameTemplate: fields.names)
    }

    var encoded: [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let fields = Fields(v: 1, dir: self.directory, part: self.part, names: self.nameTemplate)
        // Members that JSON can represent.
        return Array((try? encoder.encode(fields)) ?? Data()) + [UInt8(ascii: "\n")]
    }

    /// How a job with other settings differs from these, and what to do; nil if they are equal.
    func difference(from job: JobSettings) -> (text: String, hint: String)? {
        if job.directory != self.directory {
            return (
                "saves files in \(job.directory.printable), not in \(self.directory.printable)",
                "Give another directory for the records, or the same for the files"
            )
        }
        if job.part != self.part {
            return (
                "saves \(job.content), not \(self.content)",
                "Give another directory for the records, or save the same bytes"
            )
        }
        if job.nameTemplate != self.nameTemplate {
            return (
                "gives files \(job.naming), not \(self.naming)",
                "Give another directory for the records, or the same template"
            )
        }
        return nil
    }

    private var content: String {
        self.part.map { "bytes \($0.first)-\($0.last.map { "\($0)" } ?? "") of each file" } ?? "whole files"
    }

    private var naming: String {
        self.nameTemplate.map { "names by the template \"\($0.printable)\"" } ?? "their own names"
    }
}
