/** How long the processor works: other work on the machine does not make that longer. */
export function workMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
