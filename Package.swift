// swift-tools-version: 6.2

import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .treatAllWarnings(as: .error),
]

/// What scripts/build-record states.
let buildRecord: [CSetting] = ["SEGDL_BUILD_COMMIT", "SEGDL_BUILD_COMPILER", "SEGDL_BUILD_PACKAGES"].compactMap {
    name in
    Context.environment[name].map { .define(name, to: "\"\($0)\"") }
}

/// Optimizes what simulated worlds run, if SEGDL_OPTIMIZED is set, as scripts/build-tests does. Off by default: SwiftPM refuses
/// dependencies with unsafe flags.
let simulated: [SwiftSetting] =
    strict + (Context.environment["SEGDL_OPTIMIZED"] == nil ? [] : [.unsafeFlags(["-O", "-wmo", "-num-threads", "2"])])

let package = Package(
    name: "segdl",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "SegmentedDownload", targets: ["SegmentedDownload"]),
        .library(name: "SegmentedDownloadService", targets: ["SegmentedDownloadService"]),
        .executable(name: "segdl", targets: ["segdl"]),
    ],
    dependencies: [
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.34.1"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-http-structured-headers", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.5.0"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.8.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0", traits: []),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.5.0"),
    ],
    targets: [
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CDeflate", pkgConfig: "libdeflate", providers: [.apt(["libdeflate-dev"])]),
        .systemLibrary(name: "CExpat", pkgConfig: "expat", providers: [.apt(["libexpat1-dev"])]),
        .systemLibrary(name: "CNettle", pkgConfig: "nettle", providers: [.apt(["nettle-dev"])]),
        .systemLibrary(name: "CLinux"),
        .target(
            name: "SegmentedDownloadCore",
            dependencies: ["CDeflate", "CNettle", "CZlib", .product(name: "HTTPTypes", package: "swift-http-types")],
            swiftSettings: simulated
        ),
        .target(
            name: "SegmentedDownload",
            dependencies: [
                "SegmentedDownloadCore",
                "CExpat",
                "CLinux",
                "CNettle",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOTLS", package: "swift-nio"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "RawStructuredFieldValues", package: "swift-http-structured-headers"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: simulated
        ),
        // Apart from the library, so that only servers depend on swift-service-lifecycle and SQLite.
        .target(
            name: "SegmentedDownloadService",
            dependencies: [
                "SegmentedDownload",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: strict
        ),
        .target(name: "ChildProcess", dependencies: ["CLinux"], swiftSettings: strict),
        // Empty except in the portable program of scripts/package.
        .target(name: "CPortable"),
        // What `segdl --version -v` prints. Another commit compiles this one file again.
        .target(
            name: "CBuildRecord",
            dependencies: [
                "CDeflate", "CExpat", "CNettle", "CZlib", .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            cSettings: buildRecord
        ),
        .executableTarget(
            name: "segdl",
            dependencies: [
                "CBuildRecord",
                "CLinux",
                "CPortable",
                "ChildProcess",
                "SegmentedDownload",
                "SegmentedDownloadCore",
                "SegmentedDownloadService",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HummingbirdCore", package: "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
                .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOWebSocket", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ],
            resources: [
                .embedInCode("Page/index.html"), .embedInCode("Page/page.css"), .embedInCode("Page/add.js"),
                .embedInCode("Page/api.js"), .embedInCode("Page/app.js"), .embedInCode("Page/chart.js"),
                .embedInCode("Page/detail.js"), .embedInCode("Page/dom.js"), .embedInCode("Page/input.js"),
                .embedInCode("Page/list.js"), .embedInCode("Page/panels.js"), .embedInCode("Page/store.js"),
                .embedInCode("Page/text.js"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "Origin",
            dependencies: [
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            path: "Fixtures/Origin",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "segdl-origin",
            dependencies: ["Origin", .product(name: "ArgumentParser", package: "swift-argument-parser")],
            path: "Fixtures/segdl-origin",
            swiftSettings: strict
        ),
        .target(
            name: "Simulator",
            dependencies: [
                "SegmentedDownload", "SegmentedDownloadCore", "SegmentedDownloadService",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            path: "Tests/Simulator",
            swiftSettings: simulated
        ),
        .executableTarget(
            name: "segdl-simulate",
            dependencies: [
                "SegmentedDownloadCore", "Simulator",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Tests/Simulate",
            swiftSettings: strict
        ),
        .testTarget(
            name: "SimulationTests",
            dependencies: ["Simulator", "TestSupport"],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "segdl-crash",
            dependencies: [
                "CLinux",
                "ChildProcess",
                "Origin",
                "SegmentedDownloadCore",
                "TestSupport",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Tests/Crash",
            swiftSettings: strict
        ),
        .executableTarget(name: "segdl-benchmark-tools", path: "Benchmarks/Tools"),
        .executableTarget(
            name: "segdl-benchmark-floor",
            dependencies: [
                "CLinux",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            path: "Benchmarks/Floor",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "segdl-benchmark",
            dependencies: [
                "ChildProcess", "Origin", .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Benchmarks/Suite",
            swiftSettings: strict
        ),
        // Comes before the C library's allocator in the program that it is linked into: in no other.
        .target(name: "CAllocations", path: "Benchmarks/Allocations"),
        .executableTarget(
            name: "segdl-micro",
            dependencies: [
                "CAllocations", "SegmentedDownload", "SegmentedDownloadCore",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Benchmarks/Micro",
            swiftSettings: strict
        ),
        // What must hold of every reader of foreign bytes: scripts/fuzz compiles it with the fuzzer, the tests replay its corpus.
        .target(
            name: "FuzzTargets",
            dependencies: [
                "SegmentedDownload", "SegmentedDownloadCore", "SegmentedDownloadService",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            path: "Tests/FuzzTargets",
            swiftSettings: strict
        ),
        .target(
            name: "TestSupport", dependencies: ["ChildProcess", "SegmentedDownload"], path: "Tests/TestSupport",
            swiftSettings: strict),
        .testTarget(
            name: "SegmentedDownloadCoreTests",
            dependencies: ["SegmentedDownloadCore", "Simulator", "TestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "SegmentedDownloadTests",
            dependencies: [
                "CLinux", "SegmentedDownload", "SegmentedDownloadCore", "SegmentedDownloadService", "Origin",
                "FuzzTargets",
                "Simulator", "TestSupport",
                .product(name: "InMemoryLogging", package: "swift-log"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "SegmentedDownloadServiceTests",
            dependencies: [
                "SegmentedDownload", "SegmentedDownloadCore", "SegmentedDownloadService", "Origin", "Simulator",
                "TestSupport",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "SegdlTests",
            dependencies: [
                "CLinux", "segdl", "SegmentedDownload", "SegmentedDownloadService", "Origin", "TestSupport",
            ],
            exclude: ["Terminal/Screens"],
            swiftSettings: strict
        ),
    ],
    swiftLanguageModes: [.v6]
)
