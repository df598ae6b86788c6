// The core's public types, such as ``DownloadOptions``, are part of this library's interface.
@_exported public import SegmentedDownloadCore
