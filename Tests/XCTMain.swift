import Testing

/// Runs the tests of Swift Testing. With this file the build does not look for those of XCTest, of which there are none, and so
/// needs no index of the sources (scripts/build-tests). scripts/test starts the program; `swift test` would ask it for tests of
/// XCTest first, and fail.
@main
struct TestProgram {
    static func main() async {
        await Testing.__swiftPMEntryPoint() as Never
    }
}
