import Foundation

/// Decodes a file of `Fixtures/Cases`: inputs of the kinds that others collected, with the values that segdl must give.
///
/// Traps on a malformed file, because a case that does not run must not pass.
package func caseFile<File: Decodable>(_ name: String, as type: File.Type = File.self) -> File {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appending(components: "..", "..", "Fixtures", "Cases", "\(name).json")
    do {
        return try JSONDecoder().decode(type, from: Data(contentsOf: file))
    } catch {
        preconditionFailure("Fixtures/Cases/\(name).json: \(error)")
    }
}
