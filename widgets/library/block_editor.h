// BlockEditor: shows and edits a building block and the schedule it makes. Validity, lifespans, peaks and the timeline
// follow every change; the schedule is built off the GUI thread. GUI thread only.
#pragma once

#include <memory>

#include <QDialog>
#include <QTimer>

#include "widgets/job.h"
#include "widgets/library/block_view.h"
#include "widgets/timeline/timeline_panel.h"

class QComboBox;
class QLabel;
class QPlainTextEdit;
class QPushButton;
class QSpinBox;

namespace stagewright {

class PanelSection;
class TimelineView;
class ViewState;

class BlockEditor : public QDialog {
    Q_OBJECT
public:
    explicit BlockEditor(const Theme& theme, QWidget* parent = nullptr);

    void choose(const QString& preset, int devices, int microbatches); // "v-min", "v-half", "v-zb", "1f1b"
    void setBlock(const Block& block);
    const Block& block() const { return m_block; }
    bool valid() const { return m_valid; }
    bool settled() const { return !m_pending && !m_wait.isActive(); }
    std::shared_ptr<const Schedule> schedule() const { return m_schedule; } // null: impossible
    BlockView* view() { return m_view; }
    QString faultText() const;
    QString figuresText() const;

signals:
    void createAsked(const std::shared_ptr<const stagewright::Schedule>& schedule);

private:
    void presetChosen();
    void changed(bool fromText);
    void make();
    void fillFigures();

    const Theme& m_theme;
    Block m_block;
    bool m_valid = false;
    bool m_pending = false;
    bool m_filling = false;
    Job m_making;
    std::shared_ptr<const Schedule> m_schedule;
    std::shared_ptr<const TimelinePanel> m_panel;
    QTimer m_wait;
    BlockView* m_view;
    QComboBox* m_preset;
    QSpinBox *m_devices, *m_interval, *m_microbatches;
    QPlainTextEdit* m_text;
    PanelSection* m_figures;
    ViewState* m_state;
    TimelineView* m_timeline;
    QLabel* m_fault;
    QPushButton* m_create;
};

} // namespace stagewright
