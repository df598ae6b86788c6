import ArgumentParser
import SegmentedDownload

/// Pauses downloads of the background service.
struct PauseCommand: EntryCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Pauses downloads of the background service.", usage: "segdl pause ID…|--all",
        discussion: """
              segdl pause file.iso
              segdl pause --all
            """)
    static let action = QueueControl.Action.pause

    @OptionGroup var entries: EntryArguments
    @OptionGroup var service: ServiceOptions

    var selection: EntrySelection { self.entries.selection }
}

/// Pauses downloads that run or wait, and resumes paused ones.
struct ToggleCommand: EntryCommand {
    static let configuration = CommandConfiguration(
        commandName: "toggle",
        abstract: "Pauses downloads of the background service, or resumes those that are paused.",
        usage: "segdl toggle ID…|--all",
        discussion: """
              segdl toggle file.iso
            """)
    static let action = QueueControl.Action.toggle

    @OptionGroup var entries: EntryArguments
    @OptionGroup var service: ServiceOptions

    var selection: EntrySelection { self.entries.selection }
}

/// Tries failed downloads of the background service again.
struct RetryCommand: EntryCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Tries failed downloads of the background service again.",
        usage: "segdl retry ID…|--all",
        discussion: """
              segdl retry --all
            """)
    static let action = QueueControl.Action.retry

    @OptionGroup var entries: EntryArguments
    @OptionGroup var service: ServiceOptions

    var selection: EntrySelection { self.entries.selection }
}

/// Removes paused and failed downloads from the queue, and ended ones from the history.
struct RemoveCommand: EntryCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Removes paused and failed downloads from the queue, and ended ones from the history.",
        usage: "segdl remove ID…|--all",
        discussion: """
              segdl remove 12ca143763c28a64
            """)
    static let action = QueueControl.Action.remove

    @OptionGroup var entries: EntryArguments
    @OptionGroup var service: ServiceOptions

    var selection: EntrySelection { self.entries.selection }
}

/// Stops downloads, and takes them out of the queue.
struct CancelCommand: EntryCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Stops downloads of the background service, and takes them out of its queue.",
        usage: "segdl cancel [--delete] ID…|--all",
        discussion: """
            Partial files stay, and segdl resume PATH continues them, unless --delete is given.

              segdl cancel file.iso
              segdl cancel --delete --all
            """)
    static let action = QueueControl.Action.cancel

    @OptionGroup var entries: EntryArguments

    @Flag(help: "Delete the partial files.")
    var delete = false

    @OptionGroup var service: ServiceOptions

    var selection: EntrySelection {
        var selection = self.entries.selection
        selection.delete = self.delete
        return selection
    }
}

/// Moves a download in the queue.
struct MoveCommand: EntryCommand {
    static let configuration = CommandConfiguration(
        commandName: "move", abstract: "Moves a download in the background service's queue.",
        usage: "segdl move ID N|first|last",
        discussion: """
              segdl move file.iso first
            """)
    static let action = QueueControl.Action.move

    @Argument(help: ArgumentHelp("The download.", valueName: "ID"), completion: .downloadIDs)
    var id: String

    @Argument(help: ArgumentHelp("The place from 1, first or last.", valueName: "N|first|last"))
    var place: String

    @OptionGroup var service: ServiceOptions

    mutating func validate() throws {
        if self.index == nil { throw ValidationError("the place must be a number from 1, first or last") }
    }

    private var index: Int? {
        switch self.place {
        case "first": 0
        case "last": Int.max
        default: Int(self.place).flatMap { $0 > 0 ? $0 - 1 : nil }
        }
    }

    var selection: EntrySelection { EntrySelection(ids: [self.id], to: self.index) }
}

/// Changes the share of a download.
struct PriorityCommand: EntryCommand {
    static let configuration = CommandConfiguration(
        commandName: "priority",
        abstract: "Changes a download's share of connections and bandwidth in the background service.",
        usage: "segdl priority ID NUMBER",
        discussion: """
            The number is above 0 and at most 1. Running downloads share in proportion to it.

              segdl priority file.iso 0.9
            """)
    static let action = QueueControl.Action.change

    @Argument(help: ArgumentHelp("The download.", valueName: "ID"), completion: .downloadIDs)
    var id: String

    @Argument(help: ArgumentHelp("Above 0, at most 1. The default of a download is 0.5.", valueName: "NUMBER"))
    var priority: String

    @OptionGroup var service: ServiceOptions

    var selection: EntrySelection {
        EntrySelection(ids: [self.id], options: ["priority": .one(self.priority)])
    }
}
