// Public, as a conformance between public types is.
public import ArgumentParser
public import SegmentedDownload

extension DownloadRequest.Continuation: ExpressibleByArgument {}
extension DownloadRequest.ChangePolicy: ExpressibleByArgument {}
extension DownloadRequest.ExistingFilePolicy: ExpressibleByArgument {}
extension SyncPolicy: ExpressibleByArgument {}

extension ExpectedDigest: ExpressibleByArgument {
    public init?(argument: String) {
        self.init(argument)
    }
}
