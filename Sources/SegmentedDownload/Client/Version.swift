/// The version of this library.
public enum SegmentedDownloadVersion {
    public static let string = "0.1.0"
}
