// swift-tools-version: 6.2

import PackageDescription

// A separate package, so that segdl does not depend on swift-syntax.
let package = Package(
    name: "segdl-mutants",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(url: "https://github.com/swiftlang/swift-syntax", exact: "603.0.1"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    ],
    targets: [
        .target(
            name: "Mutation",
            dependencies: [
                .product(name: "SwiftOperators", package: "swift-syntax"),
                .product(name: "SwiftParser", package: "swift-syntax"),
                .product(name: "SwiftSyntax", package: "swift-syntax"),
            ]
        ),
        .executableTarget(
            name: "segdl-mutants",
            dependencies: ["Mutation", .product(name: "ArgumentParser", package: "swift-argument-parser")]
        ),
        .testTarget(name: "MutationTests", dependencies: ["Mutation"]),
    ],
    swiftLanguageModes: [.v6]
)
