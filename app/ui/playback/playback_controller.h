// PlaybackController: plays whatever the timeline shows, beat by beat or at a pace, with a caption under the canvas.
// Edits keep the cursor; another run or mode ends playback. Beats are computed off the GUI thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <QObject>

#include "app/ui/playback/player.h"
#include "app/ui/workspace/feature.h"
#include "widgets/job.h"

namespace stagewright {

class MemoryPlayback;
class PlaybackBar;
class PlaybackOverlay;

class PlaybackController : public Feature {
    Q_OBJECT
public:
    explicit PlaybackController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();

    bool escape() override; // ends it
    Player* player() { return m_player; }
    PlaybackBar* bar() { return m_bar; }
    PlaybackOverlay* overlay() { return m_overlay; }
    MemoryPlayback* memory() { return m_memory; }

private:
    void picturesChanged();
    void withBeats(std::function<void()> then); // at once if they are ready
    void makeBeatsAgain();
    void refreshActions();
    void tell();

    Player* m_player;
    PlaybackOverlay* m_overlay;
    MemoryPlayback* m_memory;
    PlaybackBar* m_bar;
    std::vector<std::shared_ptr<const TimelinePanel>> m_panels; // source of the player's current or pending beats
    std::function<void()> m_then;
    Job m_making;
};

} // namespace stagewright
