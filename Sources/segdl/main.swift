print("segdl")
