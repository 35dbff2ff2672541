/** Every number that the guardian judges by, its unit in its name. None is chosen for one project: test/corpus/guardian says what they hold for. */
export const THRESHOLDS = {
  /** What the guardian remembers of a run. It is bounded, however long the run. */
  rememberedSteps: 96,
  rememberedStates: 256,
  rememberedPairs: 512,
  rememberedTouches: 64,
  rememberedCallTimes: 240,
  rememberedTexts: 32,

  /** The server ticks more often than this; what is longer is time in which the server or the machine was away, and counts as this. */
  longestGapMs: 60_000,

  /** Silence: nothing is under way that the server knows of. */
  silenceMs: 5 * 60_000,
  /** For an agent whose requests to a model don't pass the gateway: it may be waiting for one. */
  unseenModelSilenceMs: 15 * 60_000,
  /** Even what is under way ends some time: a tool without output, CPU time or changed files, a model request without an answer. */
  toolWithoutSignMs: 60 * 60_000,
  modelWithoutSignMs: 30 * 60_000,
  /** A wait that has a known end is over so long after it. */
  overdueWaitMs: 2 * 60_000,
  /** A wait for something other than a person, without a known end. */
  endlessWaitMs: 60 * 60_000,
  /** Part of one CPU that a program takes while it works. */
  busyCpuShare: 0.05,

  /** Same calls with the same results and the clone as before. */
  repeatsFailing: 5,
  repeatsGood: 6,
  repeatsForSure: 20,
  /** With results that differ in durations only: a passing test that is run again. */
  repeatsAlike: 12,
  longestCycle: 6,
  cycles: 3,
  /** Changes of the clone back and forth between two states. */
  flips: 8,
  /** Calls whose result depends on what is outside of the clone may rightly be repeated: so often, and for so long. */
  pollsGood: 60,
  pollsFailing: 15,
  pollingMs: 30 * 60_000,
  failingPollMs: 5 * 60_000,

  sameErrors: 5,
  /** With edits or something new between them. */
  sameErrorsInSpite: 10,

  /** Steps that bring nothing that was not seen before. */
  staleSteps: 40,
  /** Steps that read new things and change no file. */
  stepsWithoutChange: 250,
  checksWithoutGain: 10,

  texts: 12,
  sameTexts: 3,
  chantRepeats: 8,
  chantCharacters: 20,

  /** Part of the budget, or dollars where there is none, that is spent without progress. */
  spentShare: 0.35,
  spentDollars: 10,
  spendingSteps: 15,

  driftPaths: 10,
  driftShare: 0.8,
  driftSteps: 30,

  lostFiles: 20,
  lostShare: 0.3,

  callsPerMinute: 200,
  callsAtOnce: 64,
  agentsAtOnce: 12,
  processShare: 0.9,

  nearShare: 0.8,
  nearSpaceShare: 0.9,
  /** A build takes much memory for a while. */
  highMemoryMs: 90_000,

  /** Less sure than this is not acted on; less sure than that leads to a message or a question, and no further. */
  actedOn: 0.5,
  trusted: 0.75,

  restartCoolDownMs: 60_000,
  restartsPerHour: 3,
  /** So long without a finding, and the matter is closed. */
  calmMs: 30 * 60_000,
} as const;
