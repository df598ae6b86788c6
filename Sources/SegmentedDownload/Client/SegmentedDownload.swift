// The types of header fields, ``DownloadRequest/fields``, are those of swift-http-types.
@_exported public import HTTPTypes
// The core's public types, such as ``DownloadOptions``, are part of this library's interface.
@_exported public import SegmentedDownloadCore
