import { z } from "zod";

export const SandboxPath = z
  .string()
  .min(1)
  .max(4096)
  .refine((path) => !path.includes("\0"), "a path has no NUL byte")
  .describe("Path inside the sandbox; relative ones start at the project's folder.");

export const FileType = z.enum(["file", "dir", "link", "fifo", "socket", "char", "block"]).describe("Kind of file.");
export type FileType = z.infer<typeof FileType>;

export const FileEntry = z
  .object({
    path: z.string().describe("Path relative to the one asked for; '.' for itself."),
    type: FileType,
    size: z.number().int().describe("Bytes."),
    mode: z.string().describe("Permission bits, octal."),
    modifiedAt: z.string().describe("ISO time of the last change."),
    uid: z.number().int().describe("Owner inside."),
    gid: z.number().int().describe("Group inside."),
    target: z.string().nullable().describe("Target of a link."),
  })
  .describe("A file, folder or link inside a sandbox.")
  .meta({ id: "FileEntry" });
export type FileEntry = z.infer<typeof FileEntry>;

export const FileChange = z
  .object({
    change: z.enum(["created", "changed", "removed", "moved", "overflow"]).describe("What happened."),
    path: z.string().describe("Path relative to the one watched."),
  })
  .describe("A change seen by a watch.");
export type FileChange = z.infer<typeof FileChange>;

export const DiffEntry = z
  .object({
    path: z.string().describe("Path relative to the project."),
    from: z.string().nullable().describe("Where it was before, of what was renamed."),
    status: z.enum(["added", "changed", "deleted", "renamed"]).describe("What happened to it since the base."),
    type: FileType,
    oldMode: z
      .string()
      .nullable()
      .describe("Mode in the base as git writes it: 100644, 100755 (executable), 120000 (link), 40000 (folder); null if it was not there."),
    newMode: z.string().nullable().describe("Mode now; null if it is gone."),
    added: z.number().int().nullable().describe("Lines added; null for binary or other files."),
    removed: z.number().int().nullable().describe("Lines removed."),
    leftOut: z
      .enum(["ignored", "special", "git", "folder"])
      .nullable()
      .describe(
        "Why a promotion leaves it out: ignore rules name it, it is no file, folder or link, its name imitates git's own folder, or it is an empty folder; null for what is promoted, and outside the project.",
      ),
  })
  .describe("One changed path.")
  .meta({ id: "DiffEntry" });
export type DiffEntry = z.infer<typeof DiffEntry>;

export const Diff = z.object({
  entries: z.array(DiffEntry),
  more: z.boolean().describe("Whether there is more: the list is full, or something lies deeper than a path can name."),
});
export type Diff = z.infer<typeof Diff>;

const PackageChange = z.object({
  name: z.string().describe("Name of the package."),
  old: z.string().nullable().describe("Version in reality; null if it is not there."),
  new: z.string().nullable().describe("Version inside; null if it was removed."),
});
export type PackageChange = z.infer<typeof PackageChange>;

export const SystemDiff = z
  .object({
    packages: z
      .array(PackageChange.extend({ manager: z.enum(["dpkg", "npm", "pip"]).describe("Who manages it.") }))
      .describe("Debian packages, and packages that npm and pip installed for all users."),
    etc: z.array(DiffEntry).describe("Files below /etc."),
    folders: z
      .array(
        z.object({
          path: z.string().describe("Absolute path of the folder."),
          added: z.number().int().describe("Files added."),
          changed: z.number().int().describe("Files changed."),
          deleted: z.number().int().describe("Files deleted."),
        }),
      )
      .describe("Everything else, counted by folder."),
    more: z.boolean().describe("Whether there is more than could be looked at."),
  })
  .describe("What a sandbox changed outside the project.")
  .meta({ id: "SystemDiff" });
export type SystemDiff = z.infer<typeof SystemDiff>;

export const Staleness = z
  .object({
    takenAt: z.string().describe("ISO time of the base."),
    ageMs: z.number().int().describe("Age of the base in milliseconds."),
    stale: z.boolean().describe("Whether reality has moved since."),
    changes: z
      .array(
        z.object({
          path: z.string().describe("Path relative to the project."),
          status: z.enum(["added", "changed", "deleted"]).describe("What happened in reality."),
        }),
      )
      .describe("What moved in reality, the first 1,000."),
    more: z.boolean().describe("Whether there are more."),
  })
  .describe("How far a sandbox is behind reality.")
  .meta({ id: "Staleness" });
export type Staleness = z.infer<typeof Staleness>;

export const RefreshConflict = z
  .object({
    path: z.string().describe("Path relative to the project."),
    kind: z.string().describe("content, binary, mode, type, delete/edit, directory/file, rename, late edit, ..."),
    message: z.string().describe("What happened on both sides, and what is there now."),
    reality: z.string().nullable().describe("Where reality's version lies beside the sandbox's; null if it does not."),
  })
  .describe("A place where the sandbox's change and reality's can't both be kept.");
export type RefreshConflict = z.infer<typeof RefreshConflict>;

export const RefreshReport = z
  .object({
    id: z.string().describe("Id of the sandbox."),
    name: z.string().describe("Its name."),
    takenAt: z.string().describe("ISO time of the reality that it stands on now."),
    snapshot: z.string().nullable().describe("Snapshot of the state before; null if nothing had moved."),
    changes: z
      .array(
        z.object({
          path: z.string().describe("Path relative to the project."),
          status: z.enum(["added", "changed", "deleted"]).describe("What was done inside."),
        }),
      )
      .describe("What was brought in, the first 1,000."),
    files: z.number().int().describe("How many there are."),
    conflicts: z.array(RefreshConflict).describe("What is left to be settled inside."),
  })
  .describe("What a refresh did.")
  .meta({ id: "RefreshReport" });
export type RefreshReport = z.infer<typeof RefreshReport>;

export const SandboxStatus = Staleness.extend({
  id: z.string().describe("Id of the sandbox."),
  name: z.string().describe("Its name."),
  state: z.string().describe("Its state."),
  commits: z.number().int().nullable().describe("Commits made in reality since; null where that is not known."),
  changes: z
    .array(
      z.object({
        path: z.string().describe("Path relative to the project."),
        status: z.enum(["added", "changed", "deleted"]).describe("What happened in reality."),
        changedInside: z.boolean().describe("Whether this sandbox changed it, too."),
      }),
    )
    .describe("What moved in reality, the first 1,000."),
  changedInside: z.number().int().describe("Files that this sandbox changed."),
})
  .describe("How a sandbox stands to reality.")
  .meta({ id: "SandboxStatus" });
export type SandboxStatus = z.infer<typeof SandboxStatus>;
