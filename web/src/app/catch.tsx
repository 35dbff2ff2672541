/** A page that fails says so, and the rest stays. */
import { Component, type ReactNode } from "react";
import { Failure } from "../parts/parts.tsx";

interface Caught {
  readonly error: unknown;
}

export class Catch extends Component<{ readonly children: ReactNode }, Caught> {
  override state: Caught = { error: undefined };

  static getDerivedStateFromError(error: unknown): Caught {
    return { error };
  }

  override render(): ReactNode {
    if (this.state.error === undefined) return this.props.children;
    return (
      <main className="page">
        <Failure error={this.state.error} retry={() => location.reload()} />
      </main>
    );
  }
}
