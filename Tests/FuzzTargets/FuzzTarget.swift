/// A reader of untrusted bytes, and the properties that hold for any input.
///
/// The fuzzer runs them on inputs of libFuzzer, the tests on the corpus.
package enum FuzzTarget: String, CaseIterable, Sendable {
    case contentDisposition = "content-disposition"
    case contentLength = "content-length"
    case contentRange = "content-range"
    case controlFile = "control-file"
    case digest
    case fileListing = "file-listing"
    case finishedRecord = "finished-record"
    case httpDate = "http-date"
    case linkFields = "link-fields"
    case manifest
    case metalink
    case printableText = "printable-text"
    case rangeResponse = "range-response"
    case retryAfter = "retry-after"
    case rpcMessage = "rpc-message"
    case safeFilename = "safe-filename"
    case segmentPlan = "segment-plan"
    case sourceURL = "source-url"
    case validator

    /// Reads the bytes and checks the result.
    package func check(_ bytes: [UInt8]) throws(Violation) {
        switch self {
        case .contentDisposition: try ContentDispositionProperties.check(bytes)
        case .contentLength: try ContentLengthProperties.check(bytes)
        case .contentRange: try ContentRangeProperties.check(bytes)
        case .controlFile: try ControlFileProperties.check(bytes)
        case .digest: try DigestProperties.check(bytes)
        case .fileListing: try FileListingProperties.check(bytes)
        case .finishedRecord: try FinishedRecordProperties.check(bytes)
        case .httpDate: try HTTPDateProperties.check(bytes)
        case .linkFields: try LinkFieldsProperties.check(bytes)
        case .manifest: try ManifestProperties.check(bytes)
        case .metalink: try MetalinkProperties.check(bytes)
        case .printableText: try PrintableTextProperties.check(bytes)
        case .rangeResponse: try RangeResponseProperties.check(bytes)
        case .retryAfter: try RetryAfterProperties.check(bytes)
        case .rpcMessage: try RPCMessageProperties.check(bytes)
        case .safeFilename: try SafeFilenameProperties.check(bytes)
        case .segmentPlan: try SegmentPlanProperties.check(bytes)
        case .sourceURL: try SourceURLProperties.check(bytes)
        case .validator: try ValidatorProperties.check(bytes)
        }
    }
}

/// A property that does not hold.
package struct Violation: Error, CustomStringConvertible {
    package let description: String
}

/// Checks a property; the text describes its violation.
func require(_ holds: Bool, _ violation: @autoclosure () -> String) throws(Violation) {
    guard holds else { throw Violation(description: violation()) }
}
