// ResidualPanel: predicted against measured: the step as a whole, a mark for every op of the step, the largest errors,
// and the spread by kind, stage and rank. The predicting costs may come from the run itself or another one. GUI thread
// only.
#pragma once

#include "widgets/panel/section_column.h"
#include "widgets/runs/runs_model.h"
#include "widgets/tools/residual_picture.h"

class QComboBox;
class QPushButton;

namespace stagewright {

class PlotWidget;

class ResidualPanel : public SectionColumn {
    Q_OBJECT
public:
    explicit ResidualPanel(QWidget* parent = nullptr);
    void setTheme(const Theme& theme) override;

    struct Source {
        RunRef run;
        QString name;
    };
    // runs that may provide costs besides the run itself; keeps the choice
    void setSources(const std::vector<Source>& others);
    RunRef source() const; // invalid: the run itself
    void setPicture(std::shared_ptr<const ResidualPicture> picture, std::shared_ptr<const Timeline> timeline, int step,
                    const Units& units);
    void setFault(const Error& error);
    void setSelected(SpanId span);

signals:
    void changed();                          // the source
    void opChosen(stagewright::SpanId span); // of any step
    void closeAsked();

private:
    void fillWorst();
    void fillGroups();
    void fillSelected();
    int selectedItem() const; // of the plot; −1: none

    QComboBox* m_source;
    PlotWidget* m_plot;
    PanelSection *m_form, *m_step, *m_selectedSection, *m_worst, *m_groups;
    std::vector<Source> m_others;
    std::shared_ptr<const ResidualPicture> m_picture;
    std::shared_ptr<const Timeline> m_timeline;
    Units m_units;
    SpanId m_selected = noSpan;
};

} // namespace stagewright
