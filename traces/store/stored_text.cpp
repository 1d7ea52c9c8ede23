#include "traces/store/stored_text.h"

namespace stagewright {

RunState runStateOf(std::string_view text)
{
    for (const RunState state : {RunState::Recording, RunState::Complete, RunState::Receiving})
        if (text == toText(state)) return state;
    return RunState::Interrupted;
}

Provenance provenanceOf(std::string_view text)
{
    for (const Provenance provenance : {Provenance::Simulated, Provenance::Measured, Provenance::Composed})
        if (text == toText(provenance)) return provenance;
    return Provenance::Imported;
}

} // namespace stagewright
