import SegmentedDownload
import SegmentedDownloadCore
import Testing

@testable import segdl

@Suite("Remedies on the command line")
struct RemedyTests {
    @Test("Every remedy has a text that names the command's options or subcommands", arguments: Remedy.all)
    func commandLine(remedy: Remedy) {
        #expect(remedy.commandLine != remedy.description)
        #expect(remedy.commandLine.contains(/[ ]--?[a-z]|[ ]segdl [a-z]+[ ]/), "\(remedy.commandLine)")
    }

    @Test("A remedy that the command lacks is shown as the library describes it")
    func unknownRemedy() {
        #expect(Remedy(rawValue: "wait_for_rain").commandLine == "wait_for_rain")
    }

    @Test("A failure line and an event have the same hint")
    func advice() {
        let error = DownloadError(.changed, "the remote file changed", remedy: .startOverOnChange)
        let line = FailureLine(error, of: nil).text
        #expect(line == "segdl: error[changed]: the remote file changed. Start over with --on-change restart.")
        let event = EventRecord(.failed(error, DownloadProgress()), of: TransferFile(path: "f.bin"), time: .zero)
        #expect(event.hint == "Start over with --on-change restart")
    }

    @Test("A code that the command lacks has the exit status of an internal error")
    func unknownCode() {
        let error = DownloadError(DownloadError.Code(rawValue: "new"), "it failed")
        #expect(ExitCode(error.code) == .internal)
        #expect(FailureLine(error, of: nil).text == "segdl: error[internal]: it failed. Please report this bug.")
    }
}
