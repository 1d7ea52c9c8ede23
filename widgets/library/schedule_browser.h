// ScheduleBrowser: a page for every library schedule: its summary, constraints and formulas, and its timeline and
// figures at the chosen shape and unit costs. Slow work runs off the GUI thread; a late answer is dropped. GUI thread
// only.
#pragma once

#include <stop_token>
#include <utility>
#include <vector>

#include <QDialog>
#include <QTimer>

#include "widgets/job.h"
#include "widgets/library/schedule_preview.h"
#include "widgets/theme.h"

class QDoubleSpinBox;
class QGridLayout;
class QLabel;
class QLineEdit;
class QListWidget;
class QPushButton;
class QScrollArea;
class QSpinBox;

namespace stagewright {

class Legend;
class PanelSection;
class TimelineView;
class ViewState;

class ScheduleBrowser : public QDialog {
    Q_OBJECT
public:
    explicit ScheduleBrowser(const Theme& theme, QWidget* parent = nullptr);
    ~ScheduleBrowser() override;

    void choose(const QString& name); // a library name without parameters; ignored if unknown
    void setShape(const Shape& shape);
    QString name() const; // with the non-default parameters; "" if the list is empty
    Shape shape() const;
    CostModel::UnitCosts costs() const;
    const SchedulePreview& preview() const { return m_preview; }
    bool settled() const { return !m_pending && !m_wait.isActive(); }
    QStringList listed() const; // names that match the search, in list order
    QString pageText() const;   // all text of the page

signals:
    void createAsked(const QString& name, const stagewright::Shape& shape,
                     const stagewright::CostModel::UnitCosts& costs);
    void trainAsked(const QString& name, const stagewright::Shape& shape);
    void blockAsked(const QString& name, const stagewright::Shape& shape); // its building block

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    struct Field { // of a parameter
        const ScheduleParameter* parameter;
        QWidget* editor;
        QString value() const;
    };
    void fillList();
    void filter();
    void showPage();
    void fillParameters();
    void ask();
    void present(SchedulePreview preview);
    void fillFigures();
    QWidget* buildPage();

    const Theme& m_theme;
    const ScheduleInfo* m_info = nullptr;
    std::vector<Field> m_fields;
    SchedulePreview m_preview;
    bool m_pending = false;
    Job m_previewing;
    QTimer m_wait;

    QLineEdit* m_search;
    QListWidget* m_list;
    QScrollArea* m_page;
    QLabel *m_title, *m_summary, *m_paper, *m_constraints, *m_formulas, *m_aliases, *m_drawn, *m_fault;
    ViewState* m_state;
    TimelineView* m_view;
    Legend* m_legend;
    PanelSection* m_figures;
    QSpinBox *m_ranks, *m_microbatches, *m_chunks;
    QDoubleSpinBox *m_forward, *m_input, *m_weight, *m_latency;
    QGridLayout* m_parameters;
    QWidget* m_parameterBox;
    QPushButton *m_nearest, *m_create, *m_train, *m_block;
};

} // namespace stagewright
