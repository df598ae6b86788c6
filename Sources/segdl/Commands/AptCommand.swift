import ArgumentParser
import SegmentedDownload

/// Downloads files for apt.
struct AptCommand: SegdlSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "apt-method",
        abstract: "Downloads files for apt, which starts it.",
        usage: "segdl apt-method",
        discussion: """
            apt starts a program without arguments for each kind of URL, and segdl recognizes this. In \
            /etc/apt/apt.conf.d/50segdl:

              Dir::Bin::Methods::http "/usr/local/bin/segdl";
              Dir::Bin::Methods::https "/usr/local/bin/segdl";

            apt then writes messages to the standard input of this command:

              segdl apt-method

            apt verifies the files itself. Proxies are taken from the environment; apt's own settings for http, and \
            auth.conf, do not apply.
            """
    )

    @OptionGroup(title: "Network") var network: NetworkOptions

    func perform() async -> ExitCode {
        await CommandOutput.withClient(self.network) { client, output in
            output.send(AptMethod.capabilities.text)
            await AptMethod(client: client, output: output).run()
            return .ok
        }
    }
}
