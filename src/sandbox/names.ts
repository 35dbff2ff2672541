const WARM = ["amber", "brave", "bright", "calm", "clever", "coral", "crisp", "early", "fair", "fleet", "gentle", "glad", "golden", "green", "happy", "hazel", "keen", "kind", "lively", "lucky", "mellow", "merry", "misty", "noble", "olive", "plucky", "proud", "quick", "quiet", "rapid", "rosy", "ruby", "sage", "sharp", "shy", "silver", "sleek", "smart", "snowy", "solid", "spry", "steady", "still", "sunny", "swift", "tidy", "vivid", "warm", "wild", "witty"];
const ANIMALS = ["ant", "badger", "bat", "bear", "bee", "bison", "cat", "cobra", "crab", "crane", "crow", "deer", "dove", "duck", "eagle", "eel", "elk", "falcon", "finch", "fox", "frog", "gecko", "goat", "hare", "hawk", "heron", "ibex", "jay", "koala", "lark", "lemur", "lion", "lynx", "mole", "moth", "mouse", "newt", "otter", "owl", "panda", "perch", "puma", "quail", "raven", "robin", "seal", "shrew", "skink", "snail", "stork", "swan", "tapir", "toad", "trout", "viper", "vole", "wasp", "whale", "wolf", "wren", "yak", "zebra"];

const pick = (words: readonly string[]): string => words[Math.floor(Math.random() * words.length)] ?? "plain";

/** A name that people can say; with a number once the easy ones run out. */
export function inventName(taken: (name: string) => boolean): string {
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const name = `${pick(WARM)}-${pick(ANIMALS)}`;
    if (!taken(name)) return name;
  }
  for (;;) {
    const name = `${pick(WARM)}-${pick(ANIMALS)}-${Math.floor(Math.random() * 1e6)}`;
    if (!taken(name)) return name;
  }
}
