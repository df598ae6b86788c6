// Public, as a conformance between public types is.
public import ArgumentParser
public import SegmentedDownload

extension DownloadOptions.Continuation: ExpressibleByArgument {}
extension DownloadOptions.ChangePolicy: ExpressibleByArgument {}
extension DownloadOptions.ExistingFilePolicy: ExpressibleByArgument {}
extension SyncPolicy: ExpressibleByArgument {}

extension ExpectedDigest: ExpressibleByArgument {
    public init?(argument: String) {
        self.init(argument)
    }
}
