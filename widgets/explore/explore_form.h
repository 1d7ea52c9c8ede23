// ExploreForm: the explorer's parameters, each as a slider and a spin box kept in sync. GUI thread only.
#pragma once

#include <array>

#include <QDoubleSpinBox>
#include <QSlider>
#include <QWidget>

#include "schedules/survey/explore_question.h"

namespace stagewright {

class ExploreForm : public QWidget {
    Q_OBJECT
public:
    explicit ExploreForm(QWidget* parent = nullptr);
    const ExploreQuestion& question() const { return m_question; }
    void setQuestion(const ExploreQuestion& question); // emits it if it differs
    QSlider* slider(ExploreParameter parameter) { return m_sliders[static_cast<std::size_t>(parameter)]; }
    QDoubleSpinBox* field(ExploreParameter parameter) { return m_fields[static_cast<std::size_t>(parameter)]; }

signals:
    void questionChanged();

private:
    void show();
    void change(ExploreParameter parameter, double value);

    ExploreQuestion m_question;
    std::array<QSlider*, exploreParameterCount> m_sliders{};
    std::array<QDoubleSpinBox*, exploreParameterCount> m_fields{};
    bool m_showing = false;
};

} // namespace stagewright
