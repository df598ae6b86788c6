/// This library's version.
public enum SegmentedDownloadVersion {
    public static let string = "0.1.0"
}
