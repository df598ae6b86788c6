import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

@Suite("A failed system call, as the engine reports it")
struct StorageErrorTests {
    @Test("The condition decides the code and the advice")
    func conditions() {
        for (condition, code, remedy, hasHint) in [
            (.noSpace, .space, nil, true), (.exists, .exists, nil, false), (.isLink, .exists, nil, false),
            (.isDirectory, .exists, nil, false), (.notFound, .file, nil, false),
            (.permission, .file, .chooseDirectory, false), (.readOnly, .file, .chooseDirectory, false),
            (.nameTooLong, .file, .shortenName, false), (.tooManyFiles, .file, nil, true),
            (.unsupported, .file, nil, false), (.other, .file, nil, false),
        ] as [(StorageError.Condition, DownloadError.Code, Remedy?, Bool)] {
            let error = StorageError(call: "open", path: "a/b", errno: 7, condition: condition, text: "no luck")
            #expect(error.failure.code == code && error.failure.remedy == remedy, "\(condition)")
            #expect((error.failure.hint != nil) == hasHint, "\(condition)")
            #expect(error.failure.message == "open a/b: no luck" && error.failure.errno == 7)
        }
    }
}
