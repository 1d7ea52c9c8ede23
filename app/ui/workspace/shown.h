// Shown: what the window shows: a run with its step, a comparison, an edited order, or nothing. Whatever is to be shown
// next is requested here; an answer that another request has overtaken is dropped. GUI thread only.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>

#include <QObject>
#include <QString>

#include "app/ui/runs/run_library.h"

namespace stagewright {

class Workspace;
struct Comparison;

class Shown : public QObject {
    Q_OBJECT
public:
    enum class Mode {
        Empty,
        Run,
        Compare,
        Edit,
    };
    enum class Tool {
        None,
        Lowered,
        WhatIf,
        Residuals,
    }; // over the run shown
    struct Captions {
        QString title;
        QString status; // after what the timeline says of itself
        QString clock;  // where the times are from
    };

    explicit Shown(Workspace& workspace);

    Mode mode() const { return m_mode; }
    const std::shared_ptr<const RunView>& view() const { return m_view; }   // A in compare mode; null: nothing is shown
    const std::shared_ptr<const RunView>& other() const { return m_other; } // the run compared with A
    const std::shared_ptr<const Comparison>& comparison() const { return m_comparison; }
    RunRef ref() const { return m_view ? m_view->ref : RunRef{}; }
    bool pending() const { return m_pending; } // an answer is awaited

    void showRun(const RunRef& ref, int step = -1, std::function<void()> then = {}); // then: once it is on screen
    void showSteps(const RunRef& ref, const ShownSteps& steps);                      // several on one axis
    // Every step on one axis, with the details of one (−1: the representative step); calls `then` when that is on
    // screen.
    void showEveryStep(const RunRef& ref, int detail = -1, std::function<void()> then = {});
    void showAgain(); // the same step, with its causes counted again
    void showNothing() { setMode(Mode::Empty); }
    void forget(); // what is shown; the views are left as they are

    // Selects an op of the run shown, in view; where a tool shows another picture the run's own comes back. False:
    // while an order is edited, or the picture has no such op.
    bool selectOp(SpanId span);
    void chooseOp(SpanId span); // of any step of the run shown, in mode Run

    Tool tool() const { return m_tool; }
    // not the run's own: spans have other numbers
    bool showsToolPicture() const { return m_tool == Tool::Lowered || m_tool == Tool::WhatIf; }
    // in mode Run; else none
    void setTool(Tool tool);
    // one line about it; empty: none
    const QString& toolText() const { return m_toolText; }
    void setToolText(const QString& text) { m_toolText = text; }

    // Memory budget of a rank, in the units of the run shown.
    Units units() const;
    std::optional<Bytes> budget() const;
    void applyBudget();

    // For features that answer a request themselves. `following`: the answer shows the same again.
    quint64 request(bool following = false);
    quint64 latest() const { return m_request; }
    bool isLatest(quint64 request) const { return request == m_request; }
    // whether it is the latest, which is then no longer pending
    bool answered(quint64 request);
    // the same, and it is good and still listed; a bad one is reported
    bool arrived(quint64 request, const Result<std::shared_ptr<const RunView>>& view);
    // what was requested is not wanted any more
    void drop();
    // their first run is going to be shown
    void awaitFiles(bool awaited) { m_filesAwaited = awaited; }
    bool filesAwaited() const { return m_filesAwaited; }
    void setPending(bool pending) { m_pending = pending; }

    void present(const std::shared_ptr<const RunView>& view, bool fit);
    void presentCompared(const std::shared_ptr<const RunView>& a, const std::shared_ptr<const RunView>& b,
                         const std::shared_ptr<const Comparison>& comparison);
    // Another part of the run that is shown, on the same axis: the op that was selected stays so if the part has it.
    void presentPart(const std::shared_ptr<const RunView>& view);
    void presentEdited(const std::shared_ptr<const RunView>& source);
    void setMode(Mode mode);
    void ready();                                                 // the request is on screen
    void splitViews();                                            // divides the height between rows and charts
    void tellDamage(std::initializer_list<const RunView*> views); // skipped data, once, over the work area
    void refreshTimes();                                          // the time unit has changed
    void refreshSelection();

    void setCaptions(Mode mode, std::function<Captions()> captions) { m_captions[mode] = std::move(captions); }
    Captions captions() const;          // of the mode; empty: there are none
    std::function<bool()> whileShown(); // for a message: whether its subject is still on screen

signals:
    void asked();        // something else is going to be shown
    void replacing();    // what was shown is replaced; the mode is still that of before
    void modeChanging(); // mode() is the new one; the views are set up next
    void modeChanged();
    void presented();      // a run is in the views
    void toolSet();        // by setTool
    void pictureChanged(); // the views draw something else of the same run
    void selectionShown();
    void timesRefreshed();
    void runShown(); // another run, step or comparison is on screen

private:
    Workspace& m_workspace;
    Mode m_mode = Mode::Empty;
    Tool m_tool = Tool::None;
    QString m_toolText;
    std::shared_ptr<const RunView> m_view;
    std::shared_ptr<const RunView> m_other;
    std::shared_ptr<const Comparison> m_comparison;
    quint64 m_request = 0;
    bool m_pending = false;
    bool m_filesAwaited = false;
    bool m_damageTold = false;     // what the banner says
    SpanId m_selectLater = noSpan; // in a step that is being read
    std::map<Mode, std::function<Captions()>> m_captions;
};

} // namespace stagewright
