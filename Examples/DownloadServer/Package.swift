// swift-tools-version: 6.2

import PackageDescription

let package = Package(
    name: "DownloadServer",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "segdl", path: "../.."),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.14.0"),
    ],
    targets: [
        .executableTarget(
            name: "DownloadServer",
            dependencies: [
                .product(name: "SegmentedDownload", package: "segdl"),
                .product(name: "SegmentedDownloadService", package: "segdl"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "Logging", package: "swift-log"),
            ]
        )
    ],
    swiftLanguageModes: [.v6]
)
