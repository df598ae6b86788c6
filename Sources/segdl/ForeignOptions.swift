import ArgumentParser

/// Letters that mean one thing to curl and another to wget, and get no third meaning here.
struct ForeignOptions: ParsableArguments {
    @Flag(name: .customShort("k"), help: .private)
    var insecureOrConvertLinks = false

    @Flag(name: .customShort("O"), help: .private)
    var remoteNameOrOutput = false

    mutating func validate() throws {
        if self.insecureOrConvertLinks {
            throw ValidationError(
                "-k means --insecure to curl and --convert-links to wget. Write --insecure for the former")
        }
        if self.remoteNameOrOutput {
            throw ValidationError(
                "-O names the output to wget and keeps the remote name to curl. Write -o FILE for the former; "
                    + "the latter is the default")
        }
    }
}
