// MemoryView: one chart per rank on the time axis of the TimelineView above it, stacked by category, and the run's
// counters below. Never smoothed; the peak is always drawn. In compare mode the last panel is solid and the one before
// it a dashed ghost. Pinned ranks come first; a folded group shows its rank with the largest peak. GUI thread only;
// large runs are prepared on a worker.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QPointer>
#include <QWidget>

#include "widgets/hover_card.h"
#include "widgets/job.h"
#include "widgets/memory/memory_rows.h"
#include "widgets/theme.h"
#include "widgets/themed_widget.h"
#include "widgets/timeline/key_map.h"
#include "widgets/timeline/view_state.h"

namespace stagewright {

class MemoryView : public ThemedWidget {
    Q_OBJECT

public:
    explicit MemoryView(ViewState* state, QWidget* parent = nullptr); // state must outlive the view
    ~MemoryView() override;

    // Drops the prediction. letters: names if there are several panels; empty: A, B …
    void setPanels(std::vector<std::shared_ptr<const TimelinePanel>> panels, const QString& letters = {});
    // The schedule simulated with the run's own costs, starting where the panel starts; null: none. Dotted over the
    // charts.
    void setPredicted(std::shared_ptr<const TimelinePanel> panel);
    void setSettings(const MemorySettings& settings);
    const MemorySettings& settings() const { return m_settings; }
    MemoryCategory category() const;               // the lowest one shown
    void setBudget(std::optional<Bytes> bytes);    // of every rank's activations; a dashed line
    void setRankBudgets(std::vector<Bytes> bytes); // by rank's index, instead of the one of every rank; empty: none
    void setKeyMap(KeyMapName name) { m_keyMap = name; }
    void setRowHeight(double pixels);                           // of one chart; 0: automatic, 64 to 120
    bool ready() const { return !m_filling.running(); }         // the charts match the panels
    QString subtitle() const { return scene(size()).subtitle; } // describes the curves

    Axis axis() const;
    // In use, peak, holders, oldest first. `at`: the bytes under the pointer; their holder is marked.
    CardText cardAt(int rankIndex, Nanos axisTime, std::optional<Bytes> at = {}) const;
    CardText counterCard(int place, Nanos axisTime) const;
    // The holder of the bytes at height `at` with holders stacked, the oldest lowest; invalid if there is none.
    MicrobatchRef holderAt(int rankIndex, Nanos axisTime, Bytes at) const;
    // The chart's plot rectangle in widget coordinates, for the rank's index; empty if there is none.
    QRectF plotRect(int rankIndex) const;
    double yOf(int rankIndex, Bytes bytes) const;
    QStringList rowTitles() const; // of every chart, from the top

    // For a picture: the charts share the height of the rectangle, each whole. Where that is too little for all of them,
    // the fullest ranks are shown, and the head says how many are left out.
    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme, bool withHover = false) const;
    double paintedHeight() const; // for every chart, up to sixteen
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;
    // Scrolls so that a rank's chart is the first one, or, where it is in view anywhere, that it is in view.
    void showRank(int rankIndex, bool first);
    bool known() const; // false: nothing to chart, and one line says so

signals:
    void settingsChanged();
    void menuAsked(const QPoint& globalPosition);

protected:
    void paintEvent(QPaintEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void resizeEvent(QResizeEvent*) override { fitHeight(); }
    void keyPressEvent(QKeyEvent* event) override; // zoom, pan, fit, history; up and down scroll
    void contextMenuEvent(QContextMenuEvent* event) override;

private:
    using Rows = std::shared_ptr<const std::vector<MemoryRow>>;
    MemoryScene scene(const QSizeF& size) const;
    void refill();
    void accept(Rows rows);
    void fitHeight();
    void arrange();                   // the rows to show and their texts
    int placeOf(int rankIndex) const; // −1: none
    void scrollBy(double pixels);
    QString headline() const;
    bool ofRanks() const; // ranks have charts, not only counters

    ViewState* m_state;
    std::vector<std::shared_ptr<const TimelinePanel>> m_panels;
    QString m_letters;
    QChar letterOf(std::size_t panel) const;
    std::shared_ptr<const TimelinePanel> m_predicted;
    MemorySettings m_settings;
    Rows m_rows; // never null
    std::vector<MemoryPlace> m_places;
    Job m_filling;
    std::optional<Bytes> m_budget;
    std::vector<Bytes> m_rankBudgets;
    KeyMapName m_keyMap = KeyMapName::Perfetto;
    double m_rowHeight = 0;
    double m_scroll = 0;
    QPointer<HoverCard> m_card;
};

} // namespace stagewright
