/** Limits of the database; a part of LIMITS. */
export const STORE_LIMITS = {
  /** How long a change waits while another process holds the database. */
  storeBusyMs: 5_000,
  /** After so many syncs of the database's log, each quicker than this, the event loop syncs it itself, until one takes as long. */
  quickSyncs: 8,
  quickSyncMs: 1,
  /** The event loop does so where the last sync ended this long ago: what comes in quick succession is synced in threads. */
  syncRestMs: 5,
  /** Backups of the database: how often, how many, and how large they may be together. */
  backupEveryMs: 24 * 3_600_000,
  backups: 3,
  backupsBytes: 1024 ** 3,
} as const;
